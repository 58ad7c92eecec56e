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

	"hangar.io/glidepath/internal/outbound"
)

// newClient gives a client that waits no longer than timeout for anything and
// tries nothing twice: whether Redis is worth another try is decided above it.
func newClient(raw string, trust outbound.Options, timeout time.Duration) (redis.UniversalClient, error) {
	o, err := parseURL(raw)
	if err != nil {
		return nil, fmt.Errorf("its URL: %w", err)
	}
	if err := secure(o, trust); err != nil {
		return nil, err
	}
	quiet()
	o.DialTimeout, o.PoolTimeout = timeout, timeout
	// Each use has a deadline of its own, which depends on what it moves. These
	// bound what the client does by itself.
	o.ReadTimeout, o.WriteTimeout = timeout+carryTime(maxStored), timeout+carryTime(maxStored)
	o.MaxRetries, o.DialerRetries = -1, 1
	o.ContextTimeoutEnabled = true
	// Nothing is asked that an ACL might forbid and caches do not need.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewUniversalClient(o), nil
}

// secure has every connection made by the source that trusts what the options
// say: to a node, to a Sentinel, and to the nodes that either of them names.
func secure(o *redis.UniversalOptions, trust outbound.Options) error {
	if o.TLSConfig == nil {
		return nil
	}
	source, err := outbound.NewSource("redis", trust)
	if err != nil {
		return err
	}
	o.TLSConfig, o.Dialer = nil, source.DialTLS
	return nil
}

// CheckURL says whether OpenRedis would take the URL with these options. The
// error shows nothing of it.
func CheckURL(raw string, trust outbound.Options) error {
	o, err := parseURL(raw)
	if err != nil {
		return err
	}
	if o.TLSConfig == nil && trust.Set() {
		return errors.New("it is not rediss, so no authority or client certificate would be used")
	}
	return trust.Validate()
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
