package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// newClient gives a client that waits no longer than timeout for anything and
// tries nothing twice: whether Redis is worth another try is decided above it.
func newClient(raw string, timeout time.Duration) (redis.UniversalClient, error) {
	o, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	quiet()
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
	o.MaxRetries, o.DialerRetries = -1, 1
	o.ContextTimeoutEnabled = true
	// Nothing is asked that an ACL might forbid and caches do not need.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewUniversalClient(o), nil
}

// CheckURL says whether OpenRedis would take the URL. The error shows nothing
// of it.
func CheckURL(raw string) error {
	_, err := parseURL(raw)
	return err
}

func parseURL(raw string) (*redis.UniversalOptions, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, errors.New("it is malformed") // the parser's error would show the password
	}
	query := u.Query()
	u.RawQuery = ""
	single, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, errors.New("its scheme is not redis or rediss, or its path is not a database's number")
	}
	o := &redis.UniversalOptions{
		Addrs: append([]string{single.Addr}, query["addr"]...), MasterName: query.Get("master_name"),
		Username: single.Username, Password: single.Password, DB: single.DB, TLSConfig: single.TLSConfig,
	}
	query.Del("addr")
	query.Del("master_name")
	if len(query) > 0 {
		return nil, errors.New("only master_name and addr may be in its query")
	}
	return o, nil
}

// quiet has the client's own lines, which repeat what this package logs, go
// where every other line goes. The client knows one logger for the process.
var quiet = sync.OnceFunc(func() { redis.SetLogger(logger{}) })

type logger struct{}

func (logger) Printf(ctx context.Context, format string, args ...any) {
	slog.DebugContext(ctx, "redis client", "line", fmt.Sprintf(format, args...))
}
