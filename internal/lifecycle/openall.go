package lifecycle

import (
	"errors"
	"net"
)

// Opening is a listener to be opened: with Open, at Addr, into To. Without an
// Addr there is none, and To stays nil.
type Opening struct {
	To   *net.Listener
	Open func(addr string) (net.Listener, error)
	Addr string
}

// OpenAll opens all of them in their order or, with an error, none: then what
// was opened is closed again, and every To is nil. A port in use so ends a
// process before it has told anyone anything.
func OpenAll(all ...Opening) error {
	for i, one := range all {
		if one.Addr == "" {
			continue
		}
		l, err := one.Open(one.Addr)
		if err == nil {
			*one.To = l
			continue
		}
		for _, before := range all[:i] {
			if *before.To == nil {
				continue
			}
			err = errors.Join(err, (*before.To).Close())
			*before.To = nil
		}
		return err
	}
	return nil
}
