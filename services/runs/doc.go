// Package runs is the backend of the archived reads: runs that have finished,
// as Tekton Results keeps them. It asks Results through a relay, which holds the
// right to read it; what a caller may see was decided before, and is taken from
// the identity that the edge signed and from nowhere else.
//
// Nothing older than the app's namespace is ever shown: an app that was made
// again under a name has none of the runs of the one before.
//
// Its parts: Config and Run make the process; each operation has a file, whose
// handler checks the call and has a body written; archive.go reads single runs,
// row.go and body.go make JSON of them, namespaces.go knows how far back a
// namespace goes, documents.go keeps bodies as they are served, and warming.go
// has the first of them there before anybody asks.
package runs
