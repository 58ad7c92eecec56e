package containers

import "context"

// OpenOther is Open for things with another label, so that no run of other tests takes them for its own.
func OpenOther(ctx context.Context) (*Docker, error) { return open(ctx, ownerLabel+"-of-leftovers") }

// As has what is made belong to another process.
func (d *Docker) As(o Owner) *Docker {
	return &Docker{client: d.client, owner: owner(o), label: d.label}
}

// Owner is a process that things belong to.
type Owner owner

// OwnerOf says who a process is.
func OwnerOf(pid int) (Owner, error) {
	o, err := ownerOf(pid)
	return Owner(o), err
}

// Ended says whether the owner is no more.
func (o Owner) Ended() bool { return ended(owner(o).String()) }

// Changed gives owners that differ from this one in one thing.
func (o Owner) Changed() (boot, space, start Owner) {
	boot, space, start = o, o, o
	boot.boot, space.space, start.start = "another", "pid:[1]", "1"
	return boot, space, start
}
