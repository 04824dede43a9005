"""Compares the last word of the conversation with the label of the row."""


class AnswerGrader:
    def __init__(self, config):
        pass

    async def grade(self, ctx):
        words = ctx.sample.messages[-1]["content"].rstrip(". \n").split()
        ctx.set_reward(1.0 if words and words[-1] == ctx.label else 0.0)
