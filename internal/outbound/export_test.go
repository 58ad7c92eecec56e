package outbound

import "time"

// Hasten has a transport find out so many times sooner that a connection is dead.
func (t *Transport) Hasten(times time.Duration) {
	t.health.SendPingTimeout /= times
	t.health.PingTimeout /= times
}
