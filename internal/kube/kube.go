// Package kube owns how this project's processes reach the API server: where
// the configuration comes from and what bounds a client. What is asked belongs
// to the packages that ask.
package kube

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"hangar.io/glidepath/internal/outbound"
)

// Options are the choices of one process.
type Options struct {
	// Kubeconfig is a file; empty means the pod's own ServiceAccount.
	Kubeconfig string
	// UserAgent names the process in the API server's audit log.
	UserAgent string
	// Timeout bounds one whole request; zero leaves that to the caller's
	// context, which watches and logs need.
	Timeout time.Duration
}

// Config gives the client configuration. client-go's own rate limiter is off:
// its default (5 a second) turns a burst of callers into timeouts. Whoever
// uses this bounds its own concurrency instead.
//
// The API server is reached through the proxy of the kubeconfig, else through
// that of the environment: HTTPS_PROXY holds for the API server of the own
// cluster too unless NO_PROXY excepts its address. client-go reads the
// authority's file of a kubeconfig, or of the pod, again every five minutes.
func Config(o Options) (*rest.Config, error) {
	var (
		cfg *rest.Config
		err error
	)
	if o.Kubeconfig == "" {
		cfg, err = rest.InClusterConfig()
	} else {
		cfg, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("configuring the API server's client: %w", err)
	}
	cfg.QPS = -1
	cfg.UserAgent = o.UserAgent
	cfg.Timeout = o.Timeout
	if cfg.Proxy == nil {
		// client-go would read the same variables, and show a password in its
		// error when one cannot be used.
		proxies, err := outbound.ProxiesFromEnvironment()
		if err != nil {
			return nil, fmt.Errorf("configuring the API server's client: %w", err)
		}
		cfg.Proxy = proxies.For
	}
	return cfg, nil
}
