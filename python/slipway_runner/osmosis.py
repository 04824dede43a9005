"""The contracts of `osmosis-ai`, where it is installed: its own contexts, configurations and samples, so that code written against it runs unchanged."""

import importlib.util

from .failures import AnswerError
from .samples import plain_sample


def find_osmosis():
    """None = it is not installed, or cannot be used."""
    if importlib.util.find_spec("osmosis_ai") is None:
        return None
    try:
        return Osmosis()
    except ImportError:
        return None


class Osmosis:
    """Raises ImportError when the package is another one, or of an edition without these contracts."""

    def __init__(self):
        from osmosis_ai.rollout import agent_workflow, context, grader, types
        from osmosis_ai.rollout.types import output

        self._workflow_class = agent_workflow.AgentWorkflow
        self._grader_class = grader.Grader
        self._context = context
        self._types = types
        self._coerce_output = output.coerce_output

    def is_workflow(self, found):
        return issubclass(found, self._workflow_class)

    def is_grader(self, found):
        return issubclass(found, self._grader_class)

    def workflow_config(self, found, given):
        return self._config(found, given, self._types.AgentWorkflowConfig)

    def grader_config(self, found, given):
        return self._config(found, given, self._types.GraderConfig)

    def _config(self, found, given, usual):
        """A table becomes the class that the workflow names: `AgentWorkflow[MyConfig]`. An empty one is none; an object stays what it is."""
        if not isinstance(given, dict):
            return given
        return named_config(found, self._types.BaseConfig, usual)(**given) if given else None

    def rollout(self, order):
        model = order["model"] or {"baseUrl": "", "apiKey": None}
        return self._context.RolloutContext(
            chat_completions_url=model["baseUrl"],
            api_key=model["apiKey"],
            rollout_id=order["rolloutId"],
        )

    def workflow_context(self, order, config, artifacts_dir):
        return self._context.AgentWorkflowContext(
            prompt=order["prompt"],
            config=config,
            metadata=order["metadata"],
            artifacts_dir=artifacts_dir,
        )

    async def answered_sample(self, answer, rollout):
        """A plain sample or None. Nothing answered is what an agent of the rollout has registered."""
        output = self._coerce_output(answer)
        if output is not None:
            if output.messages is None:
                return None
            return plain_sample(output.messages, dict(output.metrics))
        sample = await rollout.get_sample()
        return None if sample is None else self.plain(sample)

    def plain(self, sample):
        if not isinstance(sample, self._types.RolloutSample):
            raise AnswerError(f"the sample source gave no sample but {type(sample).__name__}")
        plain = plain_sample(
            sample.messages,
            sample.metrics,
            label=sample.label,
            reward=sample.reward,
            is_removed=sample.remove_sample,
            extra_fields=sample.extra_fields,
        )
        return {**plain, "trajectoryMessages": sample.trajectory_messages}

    def sample(self, plain):
        fields = {
            "messages": plain["messages"],
            "label": plain["label"],
            "reward": plain["reward"],
            "remove_sample": plain["isRemoved"],
            "metrics": plain["metrics"],
            "extra_fields": plain["extraFields"],
        }
        if "trajectoryMessages" in plain:
            fields["trajectory_messages"] = plain["trajectoryMessages"]
        return self._types.RolloutSample(**fields)

    def grader_context(self, order, sample, artifacts_dir):
        return self._context.GraderContext(
            label=order["label"],
            sample=sample,
            metadata=order["metadata"],
            artifacts_dir=artifacts_dir,
        )


def named_config(found, base, usual):
    for each in found.__mro__:
        for origin in getattr(each, "__orig_bases__", ()):
            for argument in getattr(origin, "__args__", ()):
                if isinstance(argument, type) and issubclass(argument, base):
                    return argument
    return usual
