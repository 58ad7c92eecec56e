package containers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// owner is the process that something belongs to. A process id alone says too little: it is given again, after a restart of
// the machine at the latest, and means another process in a container that has process ids of its own.
type owner struct {
	boot  string // of the machine
	space string // of process ids
	pid   int
	start string // in ticks since the boot
}

// startField is where /proc/PID/stat says when the process was started, counted from what follows the program's name.
const startField = 19

// ownerOf says who a process is. It has to be there.
func ownerOf(pid int) (owner, error) {
	o, err := ownerHere()
	if err != nil {
		return owner{}, err
	}
	o.pid = pid
	if o.start, err = startOf(pid); err != nil {
		return owner{}, fmt.Errorf("looking for process %d: %w", pid, err)
	}
	return o, nil
}

// ownerHere says what all processes that can be seen from here have in common.
func ownerHere() (owner, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return owner{}, fmt.Errorf("telling this boot from others: %w", err)
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return owner{}, fmt.Errorf("telling these process ids from others: %w", err)
	}
	return owner{boot: strings.TrimSpace(string(boot)), space: space}, nil
}

func startOf(pid int) (string, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", err
	}
	// The program's name is in parentheses and may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= startField {
		return "", errors.New("it does not say when it was started")
	}
	return fields[startField], nil
}

// String is what the label holds.
func (o owner) String() string { return fmt.Sprintf("%s %s %d %s", o.boot, o.space, o.pid, o.start) }

// id may stand in names.
func (o owner) id() string { return fmt.Sprintf("%d-%s", o.pid, o.start) }

// ended says whether a label names a process that was here and is no more. Of what is elsewhere nothing is known.
func ended(label string) bool {
	words := strings.Fields(label)
	here, err := ownerHere()
	if err != nil || len(words) != 4 || words[0] != here.boot || words[1] != here.space {
		return false
	}
	pid, err := strconv.Atoi(words[2])
	if err != nil {
		return false
	}
	start, err := startOf(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && start != words[3]
}
