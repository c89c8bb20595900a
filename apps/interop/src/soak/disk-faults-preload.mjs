// Preloaded into a server: makes its disk full or slow while a file `full` or `slow` is in the folder `ZABRA_SOAK_DISK`.
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'

/** How long a slow disk takes for a sync, in milliseconds. */
const SLOW_MS = 300
const POLL_MS = 50

const folder = process.env.ZABRA_SOAK_DISK
let [isFull, isSlow] = [false, false]
setInterval(() => {
  isFull = existsSync(join(folder, 'full'))
  isSlow = existsSync(join(folder, 'slow'))
}, POLL_MS).unref()

const probe = await open(process.execPath)
const files = Object.getPrototypeOf(probe)
await probe.close()

const noSpace = () =>
  Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' })
for (const name of ['write', 'writev', 'writeFile']) {
  const original = files[name]
  files[name] = function (...args) {
    return isFull ? Promise.reject(noSpace()) : original.apply(this, args)
  }
}
for (const name of ['sync', 'datasync']) {
  const original = files[name]
  files[name] = async function () {
    if (isSlow) await new Promise((done) => setTimeout(done, SLOW_MS))
    return original.call(this)
  }
}
