package containers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// subnetAttempts is how many subnets are tried: one may be somebody else's.
const subnetAttempts = 20

// Network is a bridge with a subnet of its own. Processes of this machine reach its containers at their addresses.
type Network struct {
	docker *Docker
	id     string
	name   string

	mu   sync.Mutex
	next netip.Addr
}

// Network makes a network. Docker gives chosen addresses, which stay over a restart, only in a chosen subnet.
func (d *Docker) Network(ctx context.Context, name string) (*Network, error) {
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("making a network: %w", err)
	}
	var faults []error
	for range subnetAttempts {
		subnet := randomSubnet()
		if overlaps(subnet, taken) {
			continue
		}
		full := name + "-" + d.owner.id()
		made, err := d.client.NetworkCreate(ctx, full, client.NetworkCreateOptions{
			Driver: "bridge", Labels: d.labels(),
			IPAM: &network.IPAM{Driver: "default", Config: []network.IPAMConfig{{Subnet: subnet, Gateway: subnet.Addr().Next()}}},
		})
		if err == nil {
			return &Network{docker: d, id: made.ID, name: full, next: subnet.Addr().Next().Next()}, nil
		}
		faults = append(faults, err)
	}
	return nil, fmt.Errorf("making a network: no subnet would do: %w", errors.Join(faults...))
}

// randomSubnet is of the range that is meant for such tests, RFC 2544.
func randomSubnet() netip.Prefix {
	third := rand.IntN(512) //nolint:gosec // to meet no other run, not to be a secret
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, byte(18 + third>>8), byte(third), 0}), 24)
}

func overlaps(subnet netip.Prefix, taken []net.Addr) bool {
	for _, a := range taken {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Overlaps(subnet) {
			return true
		}
	}
	return false
}

// address gives an address that no other container gets.
func (n *Network) address() netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.next
	n.next = a.Next()
	return a
}
