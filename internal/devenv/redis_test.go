package devenv_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/devenv/devtest"
)

func TestRedisKnowsOneUserAndKeepsThePasswordOutOfItsArguments(t *testing.T) {
	r := devtest.Redis(t, "maxmemory 32mb")
	opts, err := redis.ParseURL(r.URL)
	must(t, err)
	client := newRedis(t, opts)
	must(t, client.Set(t.Context(), "k", "v", 0).Err())
	if got := client.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; got != strconv.Itoa(32<<20) {
		t.Errorf("maxmemory is %q", got)
	}
	anonymous := *opts
	anonymous.Username, anonymous.Password = "", ""
	if err := newRedis(t, &anonymous).Get(t.Context(), "k").Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("without a user: %v, want a refusal", err)
	}
	args, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(r.Process.PID()), "cmdline"))
	must(t, err)
	if strings.Contains(string(args), opts.Password) {
		t.Error("the password is in the arguments")
	}
}

func TestRedisCanHangDieAndComeBackOnTheSamePort(t *testing.T) {
	r := devtest.Redis(t)
	opts, err := redis.ParseURL(r.URL)
	must(t, err)
	opts.MaxRetries, opts.ReadTimeout = -1, 30*time.Second
	client := newRedis(t, opts)
	hasty := *opts
	hasty.ReadTimeout = 50 * time.Millisecond
	ping := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return client.Ping(ctx).Err()
	}
	must(t, ping())

	r.Process.Pause()
	var timeout net.Error
	if err := newRedis(t, &hasty).Ping(t.Context()).Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("paused: %v, want a timeout", err)
	}
	r.Process.Resume()
	r.Process.Kill()
	if err := ping(); err == nil {
		t.Error("a killed Redis answers")
	}
	must(t, r.Process.Restart(t.Context()))
	must(t, ping())
}

func newRedis(t *testing.T, opts *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
