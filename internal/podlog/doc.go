// Package podlog reads the log of one container of a TaskRun's pod, through
// the API server and as long as it is.
//
// The API server ends its answer in good order whatever became of the node's:
// a log that was cut in the middle looks like one that has ended, and what a
// node says about an error stands where the log should be. So a Log looks at
// what it reads. Its end is an end only when nothing that was there before is
// missing; else it is ErrCut.
package podlog
