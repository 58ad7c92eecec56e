package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"hangar.io/glidepath/internal/certs"
	"hangar.io/glidepath/internal/simulator/pods"
	"hangar.io/glidepath/internal/standin/kubelet"
)

// kubeletFlags give the runs of simulate Pods whose logs can be read, on a node of its own.
type kubeletFlags struct {
	Listen      string `default:"127.0.0.1:0" help:"Address that the API server reaches the node's kubelet at."`
	Certificate string `help:"PEM certificate of the kubelet. Without it runs have no Pods."`
	Key         string `help:"Its PEM key."`
	ClientCA    string `name:"client-ca" help:"PEM certificates that sign the API server's client certificate."`
	Client      string `help:"Common name in that certificate."`
}

// nodeName is the node that the simulator's Pods run on.
const nodeName = "glidepath"

// start starts and registers the kubelet. Without a certificate it starts nothing, and the keeper is nil.
func (f kubeletFlags) start(ctx context.Context, cfg *rest.Config, seed uint64) (keeper *pods.Keeper, stop func(), err error) {
	if f.Certificate == "" {
		return nil, func() {}, nil
	}
	certificate, err := certs.ReadPair(f.Certificate, f.Key, time.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("the kubelet's certificate: %w", err)
	}
	authorities, err := certs.ReadPool(f.ClientCA)
	if err != nil {
		return nil, nil, fmt.Errorf("who signs for the API server: %w", err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("a client for pods: %w", err)
	}
	node, err := kubelet.Start(kubelet.Config{Addr: f.Listen, Certificate: *certificate, ClientCAs: authorities, Client: f.Client})
	if err != nil {
		return nil, nil, err
	}
	if err := node.Register(ctx, client, nodeName); err != nil {
		node.Stop()
		return nil, nil, err
	}
	return pods.New(client, node, nodeName, seed, clock.RealClock{}), node.Stop, nil
}
