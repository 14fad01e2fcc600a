package main

// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
)

func main() {
	var total int64
	var group sync.WaitGroup
	for number := 0; number < 30; number++ {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			output, err := exec.Command("echo", fmt.Sprint(number)).Output()
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			var value int64
			fmt.Sscan(string(output), &value)
			atomic.AddInt64(&total, value)
		}(number)
	}
	group.Wait()
	fmt.Println(total, C.abs(-4))
}
