"""How a call of Megatron gets its phase: by the functions on its stack, and for a pipeline's messages by direction."""

from __future__ import annotations

from runnable.lab.trace import Tracer
from runnable.traces import Kind, Phase

PHASES: dict[str, Phase] = {
    "save_checkpoint": "checkpoint",
    "load_checkpoint": "checkpoint",
    "get_batch_on_this_tp_rank": "data",
    "finalize_model_grads": "grad-sync",
    "start_grad_sync": "grad-sync",
    "prepare_grads": "optimizer",
    "step_with_ready_grads": "optimizer",
    "start_param_sync": "param-sync",
    "finish_param_sync": "param-sync",
    "forward_step": "forward",
    "backward_step": "backward",
    "recv_forward": "forward",
    "send_forward": "forward",
    "recv_backward": "backward",
    "send_backward": "backward",
    "send_forward_recv_forward": "forward",
    "send_backward_recv_backward": "backward",
    "CheckpointFunction.backward": "recompute",
    "CheckpointWithoutOutput._recompute": "recompute",
    "get_grad_norm": "optimizer",
    "initialize_megatron": "setup",
    "setup_model_and_optimizer": "setup",
    "train_step": "logging",
}
"""Function, or method by its full name → phase; the innermost one on the stack that is named decides."""
BOTH: dict[str, tuple[Phase, Phase]] = {
    "send_forward_recv_backward": ("forward", "backward"),
    "send_backward_recv_forward": ("backward", "forward"),
}
"""Function that exchanges an activation for a gradient → the phases of what it sends and of what it receives."""
HELPERS = frozenset(
    {
        *("_batched_p2p_ops", "_p2p_ops", "_communicate", "wrapper", "create_group"),
        *("_reduce", "_gather_along_first_dim", "_gather_along_last_dim", "_reduce_scatter_along_first_dim"),
        *("_broadcast", "_broadcast_cu_seqlens"),
    }
)
"""Functions of Megatron that only pass a call on."""


def phase_of(function: str, kind: Kind, peer: int | None) -> Phase | None:
    """The phase that this function on the stack gives to such a call, if it names one."""
    if function in PHASES:
        return PHASES[function]
    function = function.rsplit(".", 1)[-1]
    if function in BOTH:
        return BOTH[function][kind == "recv"]
    if function == "send_forward_backward_recv_forward_backward":
        from megatron.core import parallel_state

        # Activations go to the next stage, gradients to the one before. Megatron calls this for three stages and more.
        return (
            "forward"
            if (peer == parallel_state.get_pipeline_model_parallel_next_rank()) is (kind == "send")
            else ("backward")
        )
    return PHASES.get(function)


def tracer(tree: str) -> Tracer:
    """Records calls with lines of Megatron, whose functions also name the phase."""
    return Tracer(trees=((tree + "/", ""),), skip=("\0",), helpers=HELPERS, describe=phase_of)
