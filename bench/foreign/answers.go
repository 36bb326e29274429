// SPDX-License-Identifier: Apache-2.0
// answers SHAPE PERCENT - programs of goroutines whose critical paths are known by construction. PERCENT is how long section() takes of what it takes
// at first. Prints the nanoseconds from the shape's beginning to its end.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const unit = 500 // iterations: about 0.7 microseconds

var percent int
var sink [64]struct {
	value uint64
	_     [56]byte
}

//go:noinline
func burn(who, us int) {
	x := uint64(us)
	for i := 0; i < us*unit; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink[who&63].value += x & 1
}

//go:noinline
func section(who, us int) { burn(who, us*percent/100) }

//go:noinline
func other(who, us int) { burn(who, us) }

func each(n int, f func(int)) {
	var wg sync.WaitGroup
	for w := 0; w < n; w++ {
		wg.Add(1)
		go func(w int) {
			defer wg.Done()
			f(w)
		}(w)
	}
	wg.Wait()
}

func ladder() {
	var m sync.Mutex
	each(2, func(w int) {
		for i := 0; i < 700; i++ {
			m.Lock()
			section(w, 200)
			m.Unlock()
			other(w, 100)
		}
	})
}

func rwladder() {
	var m sync.RWMutex
	each(2, func(w int) {
		for i := 0; i < 500; i++ {
			m.Lock()
			section(w, 200)
			m.Unlock()
			m.RLock()
			other(w, 150)
			m.RUnlock()
		}
	})
}

// A producer and a consumer; which one is slow, and how many items fit between them.
func channel(room int, isSlowProducer bool) func() {
	return func() {
		c := make(chan int, room)
		go func() {
			for i := 0; i < 1500; i++ {
				if isSlowProducer {
					section(0, 300)
				} else {
					other(0, 200)
				}
				c <- i
			}
			close(c)
		}()
		for range c {
			if isSlowProducer {
				other(1, 200)
			} else {
				section(1, 300)
			}
		}
	}
}

func pipeline() {
	a, b := make(chan int), make(chan int)
	go func() {
		for i := 0; i < 1000; i++ {
			other(0, 100)
			a <- i
		}
		close(a)
	}()
	go func() {
		for v := range a {
			section(1, 400)
			b <- v
		}
		close(b)
	}()
	for range b {
		other(2, 100)
	}
}

func pool() {
	jobs, results := make(chan int), make(chan int, 16)
	for w := 0; w < 2; w++ {
		go func(w int) {
			for j := range jobs {
				section(w, 300+j%7*20)
				other(w, 100)
				results <- j
			}
		}(w)
	}
	go func() {
		for i := 0; i < 2000; i++ {
			jobs <- i
		}
		close(jobs)
	}()
	for i := 0; i < 2000; i++ {
		<-results
	}
}

func selects() {
	a, b := make(chan int), make(chan int)
	go func() {
		for i := 0; i < 800; i++ {
			section(0, 400)
			a <- i
		}
	}()
	go func() {
		for i := 0; i < 400; i++ {
			other(1, 250)
			b <- i
		}
	}()
	for i := 0; i < 1200; i++ {
		select {
		case <-a:
			other(2, 40)
		case <-b:
			other(2, 20)
		}
	}
}

func fork() {
	for round := 0; round < 60; round++ {
		each(3, func(w int) {
			if w == 0 {
				section(w, 8000)
			} else {
				other(w, 2500)
			}
		})
	}
}

func cond() {
	const room = 4
	var m sync.Mutex
	notFull, notEmpty := sync.NewCond(&m), sync.NewCond(&m)
	n := 0
	go func() {
		for i := 0; i < 1500; i++ {
			other(0, 200)
			m.Lock()
			for n == room {
				notFull.Wait()
			}
			n++
			m.Unlock()
			notEmpty.Signal()
		}
	}()
	for i := 0; i < 1500; i++ {
		m.Lock()
		for n == 0 {
			notEmpty.Wait()
		}
		n--
		m.Unlock()
		notFull.Signal()
		section(1, 300)
	}
}

// Of four at most one may be in the section.
func semaphore() {
	s := make(chan struct{}, 1)
	each(4, func(w int) {
		for i := 0; i < 350; i++ {
			s <- struct{}{}
			section(w, 250)
			<-s
			other(w, 100)
		}
	})
}

func timer() {
	for i := 0; i < 150; i++ {
		time.Sleep(time.Millisecond)
		section(0, 3000)
	}
}

func ticker() {
	c := make(chan int)
	go func() {
		for i := 0; i < 100; i++ {
			<-time.After(500 * time.Microsecond)
			section(0, 4000)
			c <- i
		}
		close(c)
	}()
	for range c {
		other(1, 1000)
	}
}

// Through another process and back.
func pipe() {
	cat := exec.Command("cat")
	to, _ := cat.StdinPipe()
	from, _ := cat.StdoutPipe()
	if err := cat.Start(); err != nil {
		panic(err)
	}
	go func() {
		line := make([]byte, 1024)
		for i := 0; i < 1000; i++ {
			section(0, 400)
			to.Write(line)
		}
		to.Close()
	}()
	line := make([]byte, 1024)
	for {
		if _, err := io.ReadFull(from, line); err != nil {
			break
		}
		other(1, 150)
	}
	cat.Wait()
}

func phases() {
	for round := 0; round < 40; round++ {
		section(0, 4000)
		each(2, func(w int) { other(w, 4000) })
	}
}

// More goroutines than processors, and all compute.
func busy() {
	each(6, func(w int) {
		for i := 0; i < 40; i++ {
			section(w, 1500)
			other(w, 1000)
		}
	})
}

type node struct{ left, right *node }

//go:noinline
func tree(n int) *node {
	if n == 0 {
		return &node{}
	}
	return &node{tree(n - 1), tree(n - 1)}
}

// Garbage while a large live heap is kept: the collector works beside what computes.
func garbage() {
	keep := tree(18)
	each(2, func(w int) {
		for i := 0; i < 150; i++ {
			section(w, 1500)
			tree(11)
		}
	})
	runtime.KeepAlive(keep)
}

func main() {
	shapes := map[string]func(){"ladder": ladder, "rwladder": rwladder, "pipeline": pipeline, "unbuffered-producer": channel(0, true),
		"unbuffered-consumer": channel(0, false), "buffered-producer": channel(8, true), "buffered-consumer": channel(8, false),
		"pool": pool, "select": selects, "fork": fork, "cond": cond, "semaphore": semaphore, "timer": timer, "ticker": ticker,
		"pipe": pipe, "phases": phases, "busy": busy, "garbage": garbage}
	shape := shapes[os.Args[1]]
	percent, _ = strconv.Atoi(os.Args[2])
	begin := time.Now()
	shape()
	fmt.Println(time.Since(begin).Nanoseconds())
}
