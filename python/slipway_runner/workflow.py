"""The role that runs an `AgentWorkflow` and a `Grader`: classes of osmosis-ai, or plain classes with the same methods."""

import copy
import inspect
import json
import os
from pathlib import Path
from types import SimpleNamespace

from .loading import load_class, load_object
from .osmosis import find_osmosis
from .samples import Sample, output_sample, plain_sample, require_reward, text_of, text_of_graded


class UserClass:
    """A class of the user and the configuration that each of its objects gets a copy of."""

    def __init__(self, found, config, is_osmosis):
        self._found = found
        self._config = config
        self.is_osmosis = is_osmosis

    def make(self):
        """The object and its configuration."""
        config = copy.deepcopy(self._config)
        return self._found(config), config


class WorkflowRole:
    def __init__(self):
        self._osmosis = None
        self._workflow = None
        self._grader = None

    async def load(self, settings):
        self._osmosis = find_osmosis()
        if settings["workflow"] is not None:
            self._workflow = self._load(settings["workflow"], "run", settings["workflowConfig"])
        if settings["grader"] is not None:
            self._grader = self._load(settings["grader"], "grade", settings["graderConfig"])
        return {"osmosis": self._osmosis is not None}

    def _load(self, reference, method, given):
        found = load_class(reference, method)
        config = load_object(given["object"]) if "object" in given else given["table"]
        osmosis = self._osmosis
        if osmosis is not None and method == "run" and osmosis.is_workflow(found):
            return UserClass(found, osmosis.workflow_config(found, config), True)
        if osmosis is not None and method == "grade" and osmosis.is_grader(found):
            return UserClass(found, osmosis.grader_config(found, config), True)
        return UserClass(found, config, False)

    async def carry_out(self, order, _connection):
        """JSON of a sample, or None."""
        if self._osmosis is None:
            return await self._carry_out(order, None)
        rollout = self._osmosis.rollout(order)
        # For the grader too: one that asks a model finds its endpoint.
        with rollout:
            return await self._carry_out(order, rollout)

    async def _carry_out(self, order, rollout):
        if order["kind"] == "workflow":
            return await self._run(order, rollout)
        return await self._grade(order)

    async def _run(self, order, rollout):
        workflow, config = self._workflow.make()
        artifacts_dir = folder(order)
        if self._workflow.is_osmosis:
            context = self._osmosis.workflow_context(order, config, artifacts_dir)
        else:
            context = SimpleNamespace(
                prompt=order["prompt"],
                config=config,
                metadata=order["metadata"],
                artifacts_dir=artifacts_dir,
                model=model_of(order),
            )
        answer = await settled(workflow.run(context))
        if self._workflow.is_osmosis:
            sample = await self._osmosis.answered_sample(answer, rollout)
        elif answer is not None:
            sample = output_sample(answer)
        else:
            sample = await self._registered(rollout)
        return None if sample is None else text_of(sample)

    async def _registered(self, rollout):
        """A class without the SDK's base may still use its agents."""
        sample = None if rollout is None else await rollout.get_sample()
        return None if sample is None else self._osmosis.plain(sample)

    async def _grade(self, order):
        plain = json.loads(order["sample"])
        grader, config = self._grader.make()
        artifacts_dir = folder(order)
        if self._grader.is_osmosis:
            sample = self._osmosis.sample(plain)
            context = self._osmosis.grader_context(order, sample, artifacts_dir)
            await settled(grader.grade(context))
            graded = self._osmosis.plain(context.sample)
        else:
            sample = Sample(plain)
            context = SimpleNamespace(
                label=order["label"],
                sample=sample,
                config=config,
                metadata=order["metadata"],
                project_path=None,
                artifacts_dir=artifacts_dir,
                model=model_of(order),
                set_reward=lambda reward: setattr(sample, "reward", reward),
            )
            await settled(grader.grade(context))
            graded = plain_sample(
                sample.messages,
                sample.metrics,
                label=sample.label,
                reward=sample.reward,
                is_removed=bool(sample.remove_sample),
                extra_fields=sample.extra_fields,
            )
            if "trajectoryMessages" in plain:
                graded["trajectoryMessages"] = plain["trajectoryMessages"]
        require_reward(graded)
        return text_of_graded(graded)


async def settled(answer):
    return await answer if inspect.isawaitable(answer) else answer


def folder(order):
    given = order["artifactsDir"]
    return None if given is None else Path(os.fsdecode(given))


def model_of(order):
    model = order["model"]
    if model is None:
        return None
    return SimpleNamespace(base_url=model["baseUrl"], api_key=model["apiKey"])
