import { SingleBar } from 'cli-progress'
import type { Io } from './io.ts'

/** How far long work has come. */
export interface ProgressBar {
  /** So much of the whole is done. */
  update(done: number): void
  /** The whole is larger or smaller than was thought. */
  setTotal(whole: number): void
  stop(): void
}

const silent: ProgressBar = { update() {}, setTotal() {}, stop() {} }

/** A bar on standard error when a person watches, else nothing. Stop it before anything else is printed. */
export function progress(io: Io, what: string, unit: string, whole: number): ProgressBar {
  if (io.stderr.isTTY !== true || whole <= 0) return silent
  const bar = new SingleBar({
    format: `${what} [{bar}] {percentage} %, {value} of {total} ${unit}, {eta_formatted} left`,
    stream: io.stderr as NodeJS.WritableStream,
    clearOnComplete: true,
    hideCursor: true,
    barCompleteChar: '=',
    barIncompleteChar: ' ',
    gracefulExit: false,
  })
  bar.start(whole, 0)
  return {
    update: (done) => bar.update(done),
    setTotal: (size) => bar.setTotal(size),
    stop: () => bar.stop(),
  }
}
