/**
 * Tasks that run at the same time and are consumed in the order they were added, a bounded number in flight. A task that
 * fails makes the next add or drain throw; `settled` then waits until nothing is in flight any more.
 */
export class OrderedWindow<T> {
  readonly #tasksMax: number;
  readonly #consume: (result: T) => void | Promise<void>;
  readonly #tasks: Promise<T>[] = [];

  constructor(tasksMax: number, consume: (result: T) => void | Promise<void>) {
    this.#tasksMax = tasksMax;
    this.#consume = consume;
  }

  async add(task: Promise<T>): Promise<void> {
    this.#tasks.push(task);
    // The failure is met in order, when the task's turn comes; until then it is not an unhandled one.
    task.catch(() => undefined);
    if (this.#tasks.length >= this.#tasksMax) {
      await this.#consumeFirst();
    }
  }

  async drain(): Promise<void> {
    while (this.#tasks.length > 0) {
      await this.#consumeFirst();
    }
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#tasks);
  }

  async #consumeFirst(): Promise<void> {
    const [task] = this.#tasks;
    if (task !== undefined) {
      const result = await task;
      void this.#tasks.shift();
      await this.#consume(result);
    }
  }
}
