package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc: USER_HZ, which is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuTime is what a process has used so far, in its own code and in the kernel. It counts in ticks, so it is for what takes
// seconds.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	d, err := parseCPUTime(string(stat))
	if err != nil {
		return 0, fmt.Errorf("reading CPU time of process %d: %w", pid, err)
	}
	return d, nil
}

// parseCPUTime reads fields 14 and 15 of proc_pid_stat(5). The second field, the program's name, is in parentheses and may
// hold anything.
func parseCPUTime(stat string) (time.Duration, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	const user, system = 14 - 3, 15 - 3 // counted from field 3, the first after the name
	if end < 0 || len(fields) <= system {
		return 0, fmt.Errorf("not what a process's stat looks like")
	}
	var ticks uint64
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}
