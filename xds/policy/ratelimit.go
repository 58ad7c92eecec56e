package policy

import (
	"errors"
	"strconv"

	"go.yaml.in/yaml/v4"

	"hangar.io/glidepath/internal/ratelimit"
	"hangar.io/glidepath/internal/yamlfile"
)

// noLimit switches off, for what stands below, a limit of a level above.
const noLimit = "none"

// rateLimit reads a limit of the level at path, which names its bucket too.
func (p *parser) rateLimit(n *yaml.Node, path, name string) RateLimit {
	if n.Kind == yaml.ScalarNode && n.Value == noLimit {
		return RateLimit{Said: true}
	}
	if n.Kind != yaml.MappingNode {
		p.Fault(n, "%s%s: neither {requests, per, burst} nor %s", path, name, noLimit)
		return RateLimit{}
	}
	before := p.Faults()
	l := ratelimit.Limit{Bucket: path}
	said := map[string]bool{}
	p.Mapping(n, path+name, func(key, value *yaml.Node) {
		said[key.Value] = true
		at := path + name + "." + yamlfile.Clip(key.Value)
		switch key.Value {
		case "requests":
			l.Requests = p.count(value, at)
		case "per":
			l.Per = p.duration(value, at, ratelimit.MinPer, ratelimit.MaxPer)
		case "burst":
			l.Burst = p.count(value, at)
		default:
			p.Fault(key, "%s%s: unknown key %s; known are requests, per, burst", path, name, yamlfile.Quote(key.Value))
		}
	})
	for _, key := range []string{"requests", "per"} {
		if !said[key] {
			p.Fault(n, "%s%s.%s: missing", path, name, key)
		}
	}
	if p.Faults() > before {
		return RateLimit{}
	}
	if !said["burst"] {
		l.Burst = l.Requests
	}
	if err := l.Validate(); err != nil {
		p.Fault(n, "%s%s: %v", path, name, err)
		return RateLimit{}
	}
	return RateLimit{Said: true, Limit: l}
}

// count reads a number of calls.
func (p *parser) count(n *yaml.Node, path string) uint32 {
	if n.Kind != yaml.ScalarNode {
		p.Fault(n, "%s: not a whole number", path)
		return 0
	}
	v, err := strconv.ParseUint(n.Value, 10, 32)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		p.Fault(n, "%s: %s is not a whole number", path, yamlfile.Quote(n.Value))
	case err != nil || v < 1 || v > ratelimit.MaxRequests:
		p.Fault(n, "%s: %s is not between 1 and %d", path, yamlfile.Quote(n.Value), ratelimit.MaxRequests)
	default:
		return uint32(v)
	}
	return 0
}
