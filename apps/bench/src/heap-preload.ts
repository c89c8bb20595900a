import { openSync, write } from 'node:fs'
import { dirname, join } from 'node:path'
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8'
import { isMainThread } from 'node:worker_threads'
import { HEAP_FILE, heapLine } from './heap.ts'

const EVERY_MS = 1000

interface Collection {
  readonly detail: { readonly kind: number }
}

function watch(file: number): void {
  const record = (isCollected: boolean): void => {
    const { used_heap_size: used, total_physical_size: all, external_memory: external } = getHeapStatistics()
    const young = getHeapSpaceStatistics()
      .filter(({ space_name: name }) => name.startsWith('new_'))
      .reduce((sum, { physical_space_size: size }) => sum + size, 0)
    const resident = process.memoryUsage.rss()
    const line = heapLine({ at: Date.now(), resident, young, old: all - young, external, used, isCollected })
    // Asynchronous, so that recording does not block the event loop.
    write(file, line, () => {})
  }
  setInterval(record, EVERY_MS, false).unref()
  new PerformanceObserver((list) => {
    const collections = list.getEntries() as readonly unknown[] as readonly Collection[]
    if (collections.some(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR)) record(true)
  }).observe({ entryTypes: ['gc'] })
}

// Worker threads are started with the same flags.
if (isMainThread) watch(openSync(join(dirname(process.argv[2]!), HEAP_FILE), 'a'))
