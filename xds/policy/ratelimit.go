package policy

import (
	"errors"
	"strconv"

	"go.yaml.in/yaml/v4"

	"hangar.io/glidepath/internal/ratelimit"
)

// noLimit switches off, for what stands below, a limit of a level above.
const noLimit = "none"

// rateLimit reads a limit of the level at path, which names its bucket too.
func (p *parser) rateLimit(n *yaml.Node, path, name string) RateLimit {
	if n.Kind == yaml.ScalarNode && n.Value == noLimit {
		return RateLimit{Said: true}
	}
	if n.Kind != yaml.MappingNode {
		p.fault(n, "%s%s: neither {requests, per, burst} nor %s", path, name, noLimit)
		return RateLimit{}
	}
	before := len(p.faults)
	l := ratelimit.Limit{Bucket: path}
	said := map[string]bool{}
	p.mapping(n, path+name, func(key, value *yaml.Node) {
		said[key.Value] = true
		at := path + name + "." + clip(key.Value)
		switch key.Value {
		case "requests":
			l.Requests = p.count(value, at)
		case "per":
			l.Per = p.duration(value, at, ratelimit.MinPer, ratelimit.MaxPer)
		case "burst":
			l.Burst = p.count(value, at)
		default:
			p.fault(key, "%s%s: unknown key %s; known are requests, per, burst", path, name, quote(key.Value))
		}
	})
	for _, key := range []string{"requests", "per"} {
		if !said[key] {
			p.fault(n, "%s%s.%s: missing", path, name, key)
		}
	}
	if len(p.faults) > before {
		return RateLimit{}
	}
	if !said["burst"] {
		l.Burst = l.Requests
	}
	if err := l.Validate(); err != nil {
		p.fault(n, "%s%s: %v", path, name, err)
		return RateLimit{}
	}
	return RateLimit{Said: true, Limit: l}
}

// count reads a number of calls.
func (p *parser) count(n *yaml.Node, path string) uint32 {
	if n.Kind != yaml.ScalarNode {
		p.fault(n, "%s: not a whole number", path)
		return 0
	}
	v, err := strconv.ParseUint(n.Value, 10, 32)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		p.fault(n, "%s: %s is not a whole number", path, quote(n.Value))
	case err != nil || v < 1 || v > ratelimit.MaxRequests:
		p.fault(n, "%s: %s is not between 1 and %d", path, quote(n.Value), ratelimit.MaxRequests)
	default:
		return uint32(v)
	}
	return 0
}
