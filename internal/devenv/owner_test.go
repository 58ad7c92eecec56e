package devenv_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hangar.io/glidepath/internal/devenv"
)

// ownerVariable has this test binary own real parts, in the folder it names, until it is killed.
const ownerVariable = "DEVENV_TEST_OWNER"

// own starts an etcd and a Redis, prints their process ids and waits for its end.
func own(dir string) error {
	etcd, err := devenv.StartEtcd(context.Background(), devenv.EtcdConfig{Dir: dir + "/etcd"})
	if err != nil {
		return err
	}
	redis, err := devenv.StartRedis(context.Background(), devenv.RedisConfig{Dir: dir + "/redis"})
	if err != nil {
		return err
	}
	fmt.Println(etcd.Process.PID(), redis.Process.PID())
	select {}
}

func TestAKilledTestBinaryLeavesNoProcess(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+t.TempDir())
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	must(t, err)
	must(t, owner.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	must(t, owner.Process.Kill())
	_ = owner.Wait() // it was killed, and says so
	for _, field := range strings.Fields(line) {
		pid, err := strconv.Atoi(field)
		must(t, err)
		eventually(t, "process "+field+" is gone", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
	}
}

func zombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(data), ") Z ")
}
