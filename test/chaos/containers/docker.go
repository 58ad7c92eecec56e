// Package containers runs programs of this machine in containers for tests, and does to them what happens to machines: they
// are killed, stop for a while, and are cut off from the network. Images are made from the programs themselves, so that no
// registry is needed.
package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	// ownerLabel holds the process that everything made here belongs to.
	ownerLabel = "hangar.io.glidepath.test-owner"

	// pingTimeout bounds the question whether there is a daemon.
	pingTimeout = 10 * time.Second
	// removeTimeout bounds the removal of one thing.
	removeTimeout = 30 * time.Second
)

// ErrNoDaemon says that no Docker daemon answers.
var ErrNoDaemon = errors.New("no Docker daemon answers; DOCKER_HOST says where one is")

// Docker is a connection to the daemon. All methods may be called concurrently.
type Docker struct {
	client *client.Client
	owner  owner
	// label is the name of the label that holds the owner.
	label string
}

// Open connects to the daemon that DOCKER_HOST names, or to the usual one, and removes what test runs left behind that
// have ended without Close. The error is ErrNoDaemon when there is none.
//
// The library's own cleaner is a container of an image that it fetches. Removing by label does the same without one.
func Open(ctx context.Context) (*Docker, error) { return open(ctx, ownerLabel) }

func open(ctx context.Context, label string) (*Docker, error) {
	me, err := ownerOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, fmt.Errorf("disabling the library's cleaner: %w", err)
	}
	c, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, errors.Join(ErrNoDaemon, err)
	}
	d := &Docker{client: c.Client, owner: me, label: label}
	pinging, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	// The first request also settles the version of the API that both sides speak.
	if _, err := d.client.Ping(pinging, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, errors.Join(ErrNoDaemon, err, d.client.Close())
	}
	if err := d.remove(ctx, ended); err != nil {
		return nil, errors.Join(err, d.client.Close())
	}
	return d, nil
}

// Close removes every container, network and image that was made, and ends the connection.
func (d *Docker) Close() error {
	err := d.remove(context.Background(), func(owner string) bool { return owner == d.owner.String() })
	return errors.Join(err, d.client.Close())
}

func (d *Docker) labels() map[string]string { return map[string]string{d.label: d.owner.String()} }

// remove takes away what belongs to owners: containers first, since they use the rest. Somebody else may be doing the same.
func (d *Docker) remove(ctx context.Context, of func(owner string) bool) error {
	filter := make(client.Filters).Add("label", d.label)
	containers, err := d.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		return fmt.Errorf("listing containers: %w", err)
	}
	networks, err := d.client.NetworkList(ctx, client.NetworkListOptions{Filters: filter})
	if err != nil {
		return fmt.Errorf("listing networks: %w", err)
	}
	images, err := d.client.ImageList(ctx, client.ImageListOptions{Filters: filter})
	if err != nil {
		return fmt.Errorf("listing images: %w", err)
	}
	var faults []error
	for _, c := range containers.Items {
		if of(c.Labels[d.label]) {
			faults = append(faults, d.removeContainer(ctx, c.ID))
		}
	}
	for _, n := range networks.Items {
		if of(n.Labels[d.label]) {
			faults = append(faults, d.removeNetwork(ctx, n.ID))
		}
	}
	for _, i := range images.Items {
		if of(i.Labels[d.label]) {
			faults = append(faults, d.removeImage(ctx, i.ID))
		}
	}
	return errors.Join(faults...)
}

func (d *Docker) removeContainer(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	_, err := d.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) { // its removal is under way
		wait := d.client.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
		select {
		case <-wait.Result:
			return nil
		case err = <-wait.Error:
		}
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("removing a container: %w", err)
	}
	return nil
}

func (d *Docker) removeNetwork(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if _, err := d.client.NetworkRemove(ctx, id, client.NetworkRemoveOptions{}); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("removing a network: %w", err)
	}
	return nil
}

func (d *Docker) removeImage(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	_, err := d.client.ImageRemove(ctx, id, client.ImageRemoveOptions{Force: true})
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
		return fmt.Errorf("removing an image: %w", err)
	}
	return nil
}
