// SPDX-License-Identifier: Apache-2.0
// faults - what a Go program's signals, panics and own stacks look like; all that it prints is the same each time.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
)

type box struct{ value int }

func recovered(b *box) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	return fmt.Sprint(b.value)
}

//go:noinline
func callers() string {
	pcs := make([]uintptr, 10)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	names := []string{}
	for {
		frame, more := frames.Next()
		names = append(names, frame.Function)
		if !more {
			return strings.Join(names, " ")
		}
	}
}

// Interrupted again and again by the runtime (SIGURG) while it computes, and changes hands all the time.
func preempted() int {
	var wg sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			for k := 0; k < 3000; k++ {
				sums[i] += k
				runtime.Gosched()
			}
			for k := 0; k < 20000000; k++ {
				sums[i] += k & 1
			}
		}(i)
	}
	for i := 0; i < 20; i++ {
		runtime.GC()
	}
	wg.Wait()
	total := 0
	for _, s := range sums {
		total += s
	}
	return total
}

func signalled() string {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	select {
	case s := <-got:
		return s.String()
	case <-time.After(10 * time.Second):
		return "no signal"
	}
}

func main() {
	debug.SetGCPercent(50)
	fmt.Println(recovered(nil))
	fmt.Println(callers())
	fmt.Println(preempted())
	fmt.Println(signalled())
	out, err := exec.Command("/bin/echo", "child").Output()
	fmt.Println(strings.TrimSpace(string(out)), err)
	if len(os.Args) > 1 && os.Args[1] == "hang" {
		fmt.Println("ready")
		select {}
	}
	if len(os.Args) > 1 && os.Args[1] == "panic" {
		var b *box
		fmt.Println(b.value)
	}
	os.Exit(7)
}
