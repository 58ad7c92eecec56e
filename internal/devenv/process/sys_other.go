//go:build !linux

package process

import "syscall"

// The tools this package runs exist for Linux alone; elsewhere it only has to compile.
func sysProcAttr() *syscall.SysProcAttr { return nil }

func waitForExit(int) {}
