package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"hangar.io/glidepath/test/bench/load"
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

// withCPU makes a load a run of these values: good answers a second, and the CPU for each request of whoever sent the load
// and of each of the processes, in microseconds.
func withCPU(run func(context.Context) (load.Result, error), pids ...int) func(context.Context) ([]float64, error) {
	return func(ctx context.Context) ([]float64, error) {
		before, err := cpuTimes(pids)
		if err != nil {
			return nil, err
		}
		r, err := run(ctx)
		if err != nil {
			return nil, err
		}
		after, err := cpuTimes(pids)
		if err != nil {
			return nil, err
		}
		each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(r.Sent) }
		values := []float64{r.PerSecond(), each(r.CPU)}
		for i := range pids {
			values = append(values, each(after[i]-before[i]))
		}
		return values, nil
	}
}

func cpuTimes(pids []int) ([]time.Duration, error) {
	all := make([]time.Duration, len(pids))
	for i, pid := range pids {
		var err error
		if all[i], err = cpuTime(pid); err != nil {
			return nil, err
		}
	}
	return all, nil
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
