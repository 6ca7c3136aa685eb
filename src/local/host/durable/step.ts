/** A task that settles once, synchronously: promises would let history events overtake one another. */

export class Step {
  settled = false;
  failed = false;
  #callbacks: (() => void)[] = [];

  static settledNow(): Step {
    const step = new Step();
    step.settle(false);
    return step;
  }

  /** Settles when all have, even if one failed early. */
  static all(steps: readonly Step[]): Step {
    const result = new Step();
    let missing = steps.length;
    for (const step of steps) {
      step.onSettled(() => {
        missing -= 1;
        if (missing === 0) result.settle(steps.some((entry) => entry.failed));
      });
    }
    return result;
  }

  /** Settles with the first one. */
  static any(steps: readonly Step[]): Step {
    const result = new Step();
    for (const step of steps) step.onSettled(() => result.settle(step.failed));
    return result;
  }

  onSettled(callback: () => void): void {
    if (this.settled) callback();
    else this.#callbacks.push(callback);
  }

  settle(failed: boolean): void {
    if (this.settled) return;
    this.settled = true;
    this.failed = failed;
    for (const callback of this.#callbacks.splice(0)) callback();
  }
}
