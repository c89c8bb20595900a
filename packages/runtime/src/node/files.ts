/** What a tool needs to read and write the files of a server, and to end while a call for one hangs. Neither TLS nor HTTP is loaded for it. */
export { nodeCompression } from './compression.ts'
export { NodeDisk } from './disk.ts'
export { endProcess, exitAtOnce } from './end-process.ts'
export { nodeSystem } from './system.ts'
