// Package server owns the conversation with Envoy: it serves one snapshot of
// resources over delta ADS to whichever Envoy connects, and remembers on disk
// the last one that an Envoy took whole.
//
// A snapshot's version is a hash of its content, so one that says nothing new
// is not sent. One that Envoy refuses is taken back: the last one that it took
// is served instead, to it and to an Envoy that starts afterwards.
package server
