// Package telemetry owns how a process is seen from outside: the registry of
// its metrics, and the one place that sets up traces. Nothing of it is global:
// what records is handed to whoever records.
//
// A call's trace is joined, never begun anew, and the caller's decision to
// sample is kept. Whether spans are exported or not, requests that are made for
// a call carry its traceparent; requests that are made for nobody carry none
// and are no spans.
package telemetry
