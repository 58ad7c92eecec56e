// Package results reads archived runs and their logs at Tekton Results, over its
// REST API and through the relay that holds the right to read it. Lists are
// streams: one record is in memory at a time, whatever the archive holds.
//
// A server of Results says less than it seems to: it answers 200 and an empty
// list when its database failed, and it pastes the text of a filter into SQL. What
// this package gives is whole and of the namespace that was asked for, or ends in
// an error.
package results
