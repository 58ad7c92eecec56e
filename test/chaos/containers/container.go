package containers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	// stepTimeout bounds what is done to a container.
	stepTimeout = time.Minute
	// maxLogs bounds what of a program's output is shown, in bytes.
	maxLogs = 64 << 10
)

// errNoNetwork says that a container is on this machine's own network, which it cannot leave.
var errNoNetwork = errors.New("it has no network of its own")

// Spec says what runs in a container.
type Spec struct {
	Name    string
	Image   string   // as Build gives it
	Network *Network // nil is this machine's own network
	User    string   // uid:gid; empty is root
	Args    []string // never secrets
	Env     map[string]string
	Files   map[string]string // path in the container: content, mode 0644
	Binds   []string          // path on this machine:path in the container[:ro]
}

// Container is a program in a container. It keeps its address whatever is done to it.
type Container struct {
	Addr netip.Addr // in its network

	docker  *Docker
	network *Network
	id      string
	name    string
}

// Run starts a container. It does not wait until the program can be used. Close of the Docker removes it.
func (d *Docker) Run(ctx context.Context, spec Spec) (*Container, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	c := &Container{docker: d, network: spec.Network, name: spec.Name}
	request := testcontainers.ContainerRequest{
		Image: spec.Image, Cmd: spec.Args, Env: spec.Env, Labels: d.labels(), Name: spec.Name + "-" + d.owner.id(),
		ConfigModifier: func(cfg *container.Config) { cfg.User = spec.User },
		HostConfigModifier: func(cfg *container.HostConfig) {
			cfg.Binds = spec.Binds
			if spec.Network == nil {
				cfg.NetworkMode = "host"
			}
		},
	}
	if n := spec.Network; n != nil {
		c.Addr = n.address()
		request.Networks = []string{n.name}
		request.EndpointSettingsModifier = func(settings map[string]*network.EndpointSettings) {
			settings[n.name].IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: c.Addr}
		}
	}
	for path, content := range spec.Files {
		request.Files = append(request.Files, testcontainers.ContainerFile{
			Reader: strings.NewReader(content), ContainerFilePath: path, FileMode: 0o644,
		})
	}
	started, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: request, Started: true, Logger: quiet{},
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s in a container: %w", spec.Name, err)
	}
	c.id = started.GetContainerID()
	return c, nil
}

// Kill ends the program at once (SIGKILL). Start starts it again, with what the container's file system holds.
func (c *Container) Kill(ctx context.Context) error {
	return c.step(ctx, "killing", func(ctx context.Context) error {
		if _, err := c.docker.client.ContainerKill(ctx, c.id, client.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
			return err
		}
		wait := c.docker.client.ContainerWait(ctx, c.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case <-wait.Result:
			return nil
		case err := <-wait.Error:
			return err
		}
	})
}

// Start starts the program again after Kill, at the same address.
func (c *Container) Start(ctx context.Context) error {
	return c.step(ctx, "starting", func(ctx context.Context) error {
		_, err := c.docker.client.ContainerStart(ctx, c.id, client.ContainerStartOptions{})
		return err
	})
}

// Pause stops the program where it stands: its connections stay open and nothing answers.
func (c *Container) Pause(ctx context.Context) error {
	return c.step(ctx, "pausing", func(ctx context.Context) error {
		_, err := c.docker.client.ContainerPause(ctx, c.id, client.ContainerPauseOptions{})
		return err
	})
}

// Resume lets the program go on.
func (c *Container) Resume(ctx context.Context) error {
	return c.step(ctx, "resuming", func(ctx context.Context) error {
		_, err := c.docker.client.ContainerUnpause(ctx, c.id, client.ContainerUnpauseOptions{})
		return err
	})
}

// Cut takes the container off its network: what is sent to it is lost, and so is what it sends. There has to be one.
func (c *Container) Cut(ctx context.Context) error {
	return c.step(ctx, "cutting off", func(ctx context.Context) error {
		if c.network == nil {
			return errNoNetwork
		}
		_, err := c.docker.client.NetworkDisconnect(ctx, c.network.id, client.NetworkDisconnectOptions{Container: c.id, Force: true})
		return err
	})
}

// Join puts the container back onto its network, at the same address.
func (c *Container) Join(ctx context.Context) error {
	return c.step(ctx, "joining", func(ctx context.Context) error {
		if c.network == nil {
			return errNoNetwork
		}
		_, err := c.docker.client.NetworkConnect(ctx, c.network.id, client.NetworkConnectOptions{
			Container:      c.id,
			EndpointConfig: &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: c.Addr}},
		})
		return err
	})
}

// Logs gives what the program has written, for the message of a failure.
func (c *Container) Logs(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	logs, err := c.docker.client.ContainerLogs(ctx, c.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "50"})
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	var text bytes.Buffer
	if _, err := stdcopy.StdCopy(&text, &text, io.LimitReader(logs, maxLogs)); err != nil {
		return err.Error()
	}
	return text.String()
}

// Remove ends the program and takes the container away.
func (c *Container) Remove(ctx context.Context) error { return c.docker.removeContainer(ctx, c.id) }

func (c *Container) step(ctx context.Context, doing string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", doing, c.name, err)
	}
	return nil
}
