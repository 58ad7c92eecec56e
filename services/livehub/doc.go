// Package livehub is the backend of the live reads: what PipelineRuns and
// TaskRuns the cluster holds now. It reads them with an identity of its own, so
// that a caller needs a right of this API and none of Tekton's, and gives them
// as the cluster lists them.
//
// A list is read at most once every two seconds for all callers and replicas.
// Whose runs a call may see is taken from the identity that the edge signed,
// and from nowhere else.
//
// Its parts: Config and Run make the process; handler.go says which request is
// which operation and lets nothing in without an identity; hub.go gets lists
// through the cache; each operation has a file.
package livehub
