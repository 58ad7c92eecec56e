package edgemetrics

import "time"

// SetTimeout bounds one reading in place of the real bound.
func (c *Collector) SetTimeout(d time.Duration) { c.timeout = d }
