// Package pods gives the TaskRuns of a simulated cluster the Pods that Tekton makes for them, on a node whose kubelet is a
// stand-in, and lets their steps write logs.
//
// A Pod and its logs follow from the TaskRun: which attempt, which step runs since when, how it ended. What a step writes,
// and when, follows from the seed and the step, so that a log that was lost with its process is the same again.
package pods
