package authz

import (
	"context"
	"net"

	"hangar.io/glidepath/authz/renewals"
	"hangar.io/glidepath/internal/lifecycle"
)

// renewStreams makes a task that renews streams on l, or does nothing without
// a listener.
func renewStreams(l net.Listener, cfg renewals.Config) lifecycle.Task {
	if l == nil {
		return func(context.Context) error { return nil }
	}
	s := renewals.New(cfg)
	return func(ctx context.Context) error {
		return lifecycle.Run(ctx, lifecycle.Loop(cfg.Tickets.Run), lifecycle.Loop(s.Run), lifecycle.Serve(l, s.Handler()))
	}
}
