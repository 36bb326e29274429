// SPDX-License-Identifier: Apache-2.0
// shapes - programs whose critical paths are known by construction; each writes its own execution trace.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

var spins uint64

// burn takes about that many microseconds of processor time.
//
//go:noinline
func burn(us int) {
	n := us * perMicrosecond
	x := uint64(n)
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	spins += x & 1
}

var perMicrosecond = 1000

func calibrate() {
	best := time.Hour
	for i := 0; i < 5; i++ {
		begin := time.Now()
		burn(2000)
		if took := time.Since(begin); took < best {
			best = took
		}
	}
	perMicrosecond = int(float64(perMicrosecond) * 2000e3 / float64(best.Nanoseconds()))
}

func slowStage(us int)  { burn(us) }
func quickStage(us int) { burn(us) }

// Two unbuffered channels; the middle stage is slow.
func pipeline(us int) {
	a, b := make(chan int), make(chan int)
	go producer(a)
	go middle(a, b, us)
	for range b {
		quickStage(100)
	}
}
func producer(a chan int) {
	for i := 0; i < 100; i++ {
		quickStage(100)
		a <- i
	}
	close(a)
}
func middle(a, b chan int, us int) {
	for v := range a {
		slowStage(us)
		b <- v
	}
	close(b)
}

// Workers that need one mutex for most of their time.
func ladder(us int) {
	var m sync.Mutex
	var wg sync.WaitGroup
	for w := 0; w < 4; w++ {
		wg.Add(1)
		go rung(&m, &wg, us)
	}
	wg.Wait()
}
func rung(m *sync.Mutex, wg *sync.WaitGroup, us int) {
	defer wg.Done()
	for i := 0; i < 25; i++ {
		m.Lock()
		slowStage(us)
		m.Unlock()
		quickStage(100)
	}
}

// One worker of four has more to do.
func fork(us int) {
	var wg sync.WaitGroup
	for w := 0; w < 4; w++ {
		wg.Add(1)
		if w == 3 {
			go slowWorker(&wg, us)
		} else {
			go quickWorker(&wg)
		}
	}
	wg.Wait()
}
func slowWorker(wg *sync.WaitGroup, us int) {
	for i := 0; i < 40; i++ {
		slowStage(us)
	}
	wg.Done()
}
func quickWorker(wg *sync.WaitGroup) {
	for i := 0; i < 40; i++ {
		quickStage(200)
	}
	wg.Done()
}

// Main selects of two producers, one slow.
func selects(us int) {
	a, b := make(chan int), make(chan int)
	go sender(a, us, 40)
	go sender(b, us*4, 10)
	for i := 0; i < 50; i++ {
		select {
		case <-a:
			quickStage(50)
		case <-b:
			quickStage(50)
		}
	}
}
func sender(c chan int, us, n int) {
	for i := 0; i < n; i++ {
		slowStage(us)
		c <- i
	}
}

// Garbage, more than one processor can collect by the way.
type node struct{ left, right *node }

func tree(n int) *node {
	if n == 0 {
		return &node{}
	}
	return &node{tree(n - 1), tree(n - 1)}
}
func garbage(us int) {
	keep := tree(16)
	var wg sync.WaitGroup
	for w := 0; w < 2; w++ {
		wg.Add(1)
		go func() {
			for i := 0; i < us/100; i++ {
				tree(12)
			}
			wg.Done()
		}()
	}
	wg.Wait()
	runtime.KeepAlive(keep)
}

func sleeps(us int) {
	for i := 0; i < 10; i++ {
		time.Sleep(time.Duration(us) * time.Microsecond)
		quickStage(100)
	}
}

func pipes(us int) {
	r, w, _ := os.Pipe()
	go writer(w, us)
	buf := make([]byte, 1)
	for {
		if n, _ := r.Read(buf); n == 0 {
			return
		}
		quickStage(50)
	}
}
func writer(w *os.File, us int) {
	for i := 0; i < 40; i++ {
		slowStage(us)
		w.Write([]byte{1})
	}
	w.Close()
}

func main() {
	shapes := map[string]func(int){"pipeline": pipeline, "ladder": ladder, "fork": fork, "selects": selects,
		"garbage": garbage, "sleeps": sleeps, "pipes": pipes}
	us, _ := strconv.Atoi(os.Args[2])
	calibrate()
	if len(os.Args) > 3 { // into this file Go's own trace
		f, err := os.Create(os.Args[3])
		if err != nil {
			panic(err)
		}
		if err := trace.Start(f); err != nil {
			panic(err)
		}
		defer f.Close()
		defer trace.Stop()
	}
	begin := time.Now()
	shapes[os.Args[1]](us)
	fmt.Println(time.Since(begin).Nanoseconds())
}
