// Package renewal owns how a stream stays open after its call was decided: a
// backend shows authz the ticket that the call came with, again and again, and
// authz decides anew. Who loses a right, whose token ends or is taken back, and
// who is denied by list has the stream ended, with the reason.
//
// Nothing here knows a caller's token: the ticket is sealed for authz.
package renewal

import "time"

const (
	// Every is the longest time from one renewal of a stream to the next. Each
	// one is earlier by a random part of it, so that streams that were opened
	// together do not ask together.
	Every = 30 * time.Second
	// Grace is how long a stream stays open after the last renewal that was
	// granted, if nobody can tell. What such a renewal rests on may be 20 s old:
	// the API server remembers a token for 10 s, and so does authz. Both
	// together are the 60 s within which a stream ends.
	Grace = 40 * time.Second
	// MaxBatch bounds the tickets of one request.
	MaxBatch = 64
	// MaxTicketBytes bounds a ticket: a token of 16 KiB and what it is about,
	// sealed and in base64.
	MaxTicketBytes = 32 << 10
	// HoldTime is how long authz holds a request for the next epoch.
	HoldTime = 20 * time.Second
)
