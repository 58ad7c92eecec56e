package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionSucceeded is the one condition type of a run: True, False, or Unknown while it goes on.
const ConditionSucceeded = "Succeeded"

// Reasons of a PipelineRun's condition.
const (
	ReasonStarted                     = "Started"
	ReasonRunning                     = "Running"
	ReasonSucceeded                   = "Succeeded"
	ReasonFailed                      = "Failed"
	ReasonCompleted                   = "Completed"
	ReasonCancelled                   = "Cancelled"
	ReasonPipelineRunPending          = "PipelineRunPending"
	ReasonPipelineRunStopping         = "PipelineRunStopping"
	ReasonPipelineRunTimeout          = "PipelineRunTimeout"
	ReasonCancelledRunningFinally     = "CancelledRunningFinally"
	ReasonStoppedRunningFinally       = "StoppedRunningFinally"
	ReasonTimedOutRunningFinally      = "PipelineRunTimeoutRunningFinally"
	ReasonResolvingPipelineRef        = "ResolvingPipelineRef"
	ReasonCouldntGetPipeline          = "CouldntGetPipeline"
	ReasonCouldntGetTask              = "CouldntGetTask"
	ReasonPipelineInvalidGraph        = "PipelineInvalidGraph"
	ReasonTaskRunCancelled            = "TaskRunCancelled"
	ReasonTaskRunTimeout              = "TaskRunTimeout"
	ReasonTaskRunResolutionFailed     = "TaskRunResolutionFailed"
	ReasonTaskRunPending              = "Pending"
	ReasonTaskRunToBeRetried          = "ToBeRetried"
	ReasonTaskRunStepFailed           = "StepFailed"
	ReasonTaskRunFailureIgnored       = "FailureIgnored"
	terminationCompleted              = "Completed"
	terminationError                  = "Error"
	terminationContinued              = "Continued"
	terminationSkipped                = "Skipped"
	waitingPodInitializing            = "PodInitializing"
	messageRunning                    = "Not all Steps in the Task have finished executing"
	messageSucceeded                  = "All Steps have completed executing"
	messageInitializing               = `pod status "Initialized":"False"; message: "containers with incomplete status: [prepare place-scripts]"`
	messageCancelledByPipelineRun     = "TaskRun cancelled as the PipelineRun it belongs to has been cancelled."
	messageCancelledByPipelineTimeOut = "TaskRun cancelled as the PipelineRun it belongs to has timed out."
)

// Words of spec.status: what somebody asks of a run.
const (
	SpecCancelled           = "Cancelled"
	SpecCancelledRunFinally = "CancelledRunFinally"
	SpecStoppedRunFinally   = "StoppedRunFinally"
	SpecPending             = "PipelineRunPending"
	SpecTaskRunCancelled    = "TaskRunCancelled"
	SpecTaskRunPending      = "TaskRunPending"
)

// Condition says how a run stands.
type Condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
}

// Conditions is a run's list of conditions; the one of type Succeeded counts.
type Conditions []Condition

// Succeeded returns the condition of that type, or the zero Condition when the controller has not seen the run yet.
func (cs Conditions) Succeeded() Condition {
	for _, c := range cs {
		if c.Type == ConditionSucceeded {
			return c
		}
	}
	return Condition{}
}

// Done reports whether the run has ended, well or badly.
func (cs Conditions) Done() bool {
	status := cs.Succeeded().Status
	return status == corev1.ConditionTrue || status == corev1.ConditionFalse
}

// Failed reports whether the run has ended badly.
func (cs Conditions) Failed() bool { return cs.Succeeded().Status == corev1.ConditionFalse }

// set replaces the Succeeded condition. The transition time moves only when something else does.
func (cs *Conditions) set(status corev1.ConditionStatus, reason, message string, now time.Time) {
	next := Condition{Type: ConditionSucceeded, Status: status, Reason: reason, Message: message}
	for i, old := range *cs {
		if old.Type != ConditionSucceeded {
			continue
		}
		next.LastTransitionTime = old.LastTransitionTime
		if next != old {
			next.LastTransitionTime = metav1.NewTime(now)
		}
		(*cs)[i] = next
		return
	}
	next.LastTransitionTime = metav1.NewTime(now)
	*cs = append(*cs, next)
}

func timePointer(now time.Time) *metav1.Time {
	t := metav1.NewTime(now)
	return &t
}
