package containers

import "strconv"

// As has what is made belong to another process.
func (d *Docker) As(pid int) *Docker { return &Docker{client: d.client, owner: strconv.Itoa(pid)} }
