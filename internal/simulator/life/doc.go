// Package life is the life of a PipelineRun and its TaskRuns as Tekton's controllers lead it, without a cluster: a
// function from an object, its children and the time to what a controller would write next.
//
// MovePipelineRun and MoveTaskRun take one step each. They keep nothing between calls: what comes next follows from the
// object itself, the time and the Rules, so that a controller may stop anywhere and another may go on. Conditions,
// reasons and messages are those of Tekton Pipelines v1.15.
//
// How a run goes is its Fate: written in the run's annotation, else drawn from the seed and the run's name.
package life
