import { SingleBar } from 'cli-progress'
import type { Io } from './io.ts'

/** Progress of a long operation. */
export interface ProgressBar {
  /** Shows the amount done so far. */
  update(done: number): void
  /** Changes the total amount. */
  setTotal(total: number): void
  stop(): void
}

const noProgress: ProgressBar = { update() {}, setTotal() {}, stop() {} }

/** Yields items as they come, and counts them on a bar. */
export async function* counted<T>(
  items: AsyncIterable<T>,
  bar: ProgressBar,
  sizeOf: (item: T) => number = () => 1,
): AsyncGenerator<T> {
  let done = 0
  for await (const item of items) {
    bar.update((done += sizeOf(item)))
    yield item
  }
}

/** Shows progress on standard error if that is a terminal: a bar, or a count where `total` is unknown. Stop it before printing anything else. */
export function progress(io: Io, action: string, unit: string, total?: number): ProgressBar {
  if (io.stderr.isTTY !== true || (total !== undefined && total <= 0)) return noProgress
  const bar = new SingleBar({
    format:
      total === undefined
        ? `${action}: {value} ${unit}`
        : `${action} [{bar}] {percentage} %, {value} of {total} ${unit}, {eta_formatted} left`,
    stream: io.stderr as NodeJS.WritableStream,
    clearOnComplete: true,
    hideCursor: true,
    barCompleteChar: '=',
    barIncompleteChar: ' ',
    gracefulExit: false,
  })
  bar.start(total ?? 0, 0)
  return {
    update: (done) => bar.update(done),
    setTotal: (size) => bar.setTotal(size),
    stop: () => bar.stop(),
  }
}
