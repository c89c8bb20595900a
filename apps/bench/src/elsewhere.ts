import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { LoadOptions, LoadResult } from './load.ts'

/** Runs a load in a process of its own. */
export function runElsewhere(settings: LoadOptions): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL('worker.js', import.meta.url)), [JSON.stringify(settings)])
    child.once('message', (result) => resolve(result as LoadResult))
    child.once('exit', (code) => reject(new Error(`A load process ended with ${code}`)))
  })
}
