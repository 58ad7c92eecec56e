// Package sse owns server-sent events: how an event is written down, how what
// is published once reaches every follower, and how one is read back.
//
// An event is encoded once, into bytes that never change and that all streams
// share. A Topic keeps the last of what was published. A follower of it is a
// cursor and nothing else: the topic knows none of its followers, so a slow one
// costs the others nothing and nothing has to be taken down when one leaves.
//
// Each Stream is written by one goroutine, that of its request. Every write has
// a deadline of its own.
package sse
