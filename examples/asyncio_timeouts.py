"""One wheel for many time-outs of an asyncio program: callbacks run on the event loop. Run it: it prints four lines."""

import asyncio

from purgatorio import IntrusiveTimer, LoopExecutor, ReaperTimer


async def main() -> None:
    """A waiter that is answered in time, and one that is not."""
    loop = asyncio.get_running_loop()
    wheel = IntrusiveTimer("time-outs", executor=LoopExecutor(loop))
    async with ReaperTimer("time-outs-reaper", wheel):
        answered: asyncio.Future[str] = loop.create_future()
        forgotten: asyncio.Future[str] = loop.create_future()

        # On the loop, like `cancel`: a cancelled function never runs. (If others may end the future, test `done()`.)
        handle = wheel.call_later(10_000, lambda: answered.set_exception(TimeoutError("answered")))
        wheel.call_later(20, lambda: forgotten.set_exception(TimeoutError("forgotten")))
        print(f"waiting: {wheel.size()}")

        answered.set_result("the answer")
        wheel.cancel(handle)
        print(f"answered: {await answered}")
        try:
            await forgotten
        except TimeoutError as late:
            print(f"timed out: {late}")
        print(f"waiting: {wheel.size()}")


if __name__ == "__main__":
    asyncio.run(main())
