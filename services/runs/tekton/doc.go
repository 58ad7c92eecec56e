// Package tekton reads archived PipelineRuns and TaskRuns: what they are, and
// how they ended. The archive holds objects of every version that the cluster
// ever had, so only what is needed is read, and it is read leniently: an absent
// field is no fault, and words that nobody knows are kept as they are.
package tekton
