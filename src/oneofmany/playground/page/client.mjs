// The page's side of the workers.

const waiting = new Map();
let number = 0;

/** A worker that runs a text of JavaScript. */
export class Client {
  constructor(source) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.worker.onmessage = ({ data: { id, part, result, error } }) => {
      const one = waiting.get(id);
      if (!one) return;
      if (part) {
        one.tell?.(part);
        return;
      }
      waiting.delete(id);
      if (error) one.reject(new Error(error));
      else one.resolve(result);
    };
  }

  /** Ask for some work in a lane; `tell` gets its parts. The result is null if newer work in the lane replaced it. */
  ask(kind, lane, message = {}, tell = null) {
    const id = ++number;
    for (const [other, one] of waiting) {
      // Parts of replaced work that are still on their way are not wanted.
      if (one.lane === lane && one.client === this) waiting.get(other).tell = null;
    }
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject, tell, lane, client: this });
      this.worker.postMessage({ id, lane, kind, ...message });
    });
  }

  /** End the work of a lane. */
  stop(lane) {
    return this.ask("stop", lane);
  }
}
