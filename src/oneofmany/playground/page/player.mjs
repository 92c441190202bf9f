// Plays the steps of a run: play, pause, step, a slider and a speed.

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Player {
  /** controls: the elements by name; show(frame, last): draws a frame, `last` if no further one will follow it. */
  constructor(controls, show) {
    Object.assign(this, { controls, show, frames: [], at: -1, done: false, playing: false, clock: 0 });
    controls.play.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    controls.back.addEventListener("click", () => this.#jump(this.at - 1));
    controls.forward.addEventListener("click", () => this.#jump(this.at + 1));
    controls.first.addEventListener("click", () => this.#jump(0));
    controls.slider.addEventListener("input", () => this.#jump(Number(controls.slider.value) - 1));
  }

  /** Forget the frames and wait for new ones; they play as they come. */
  reset() {
    Object.assign(this, { frames: [], at: -1, done: false, playing: true });
    this.#controls();
  }

  /** Add a frame: { step, belief, board }. */
  add(frame) {
    this.frames.push(frame);
    if (!this.clock && this.playing && !calm.matches) this.#tick();
  }

  /** No more frames will come. With reduced motion the last one is shown at once. */
  finish() {
    this.done = true;
    if (calm.matches) this.#jump(this.frames.length - 1);
    else if (this.at === this.frames.length - 1) this.#to(this.at);
    this.#controls();
  }

  play() {
    this.playing = true;
    if (this.at >= this.frames.length - 1) this.at = -1;
    this.#tick();
  }

  pause() {
    this.playing = false;
    clearTimeout(this.clock);
    this.clock = 0;
    this.#controls();
  }

  /** Show the last frame at once. */
  end() {
    this.#jump(this.frames.length - 1);
  }

  #tick() {
    clearTimeout(this.clock);
    this.clock = 0;
    if (!this.playing) return;
    if (this.at < this.frames.length - 1) {
      this.#to(this.at + 1);
      this.clock = setTimeout(() => this.#tick(), this.#pause());
    } else if (this.done) {
      this.pause();
    }
  }

  /** Milliseconds between two steps; "auto" plays 10 a second, or all of them in four seconds. */
  #pause() {
    const speed = Number(this.controls.speed.value);
    return speed ? 1000 / speed : Math.min(100, 4000 / this.frames.length);
  }

  #jump(at) {
    this.pause();
    if (this.frames.length) this.#to(Math.max(0, Math.min(at, this.frames.length - 1)));
  }

  #to(at) {
    this.at = at;
    const last = this.done && at === this.frames.length - 1;
    if (last) this.playing = false;
    this.show(this.frames[at], last);
    this.#controls();
  }

  #controls() {
    const { play, back, forward, first, slider } = this.controls;
    play.disabled = !this.playing && !this.frames.length;
    play.dataset.state = this.playing ? "playing" : "paused";
    play.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    slider.max = Math.max(1, this.frames.length);
    slider.value = this.at + 1;
    slider.setAttribute("aria-valuetext", `step ${this.at + 1} of ${this.frames.length}`);
    back.disabled = first.disabled = this.at <= 0;
    forward.disabled = this.at >= this.frames.length - 1;
  }
}
