// Entry of `npm start`: installs, builds the server and the command line, and then runs the server in this process.
// Old versions of Node must be able to parse this file, to print which version is needed: no syntax and no
// module names newer than Node 12.17.
import { spawn } from 'child_process'
import { existsSync, readFileSync } from 'fs'
import { dirname, join } from 'path'
import { fileURLToPath, pathToFileURL } from 'url'

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, '..', '..')
const needed = [20, 19]

function say(line) {
  process.stderr.write(line + '\n')
}

function isOld(version) {
  const parts = version.replace(/^v/, '').split('.').map(Number)
  return parts[0] < needed[0] || (parts[0] === needed[0] && parts[1] < needed[1])
}

// npm passes its own path; running it by that path works on every system.
function pnpm(pinned, args) {
  const npm = process.env.npm_execpath
  if (npm && /npm-cli\.js$/.test(npm))
    return {
      command: process.execPath,
      args: [npm, 'exec', '--yes', '--', pinned].concat(args),
      shell: false,
    }
  return { command: 'npx', args: ['--yes', pinned].concat(args), shell: process.platform === 'win32' }
}

// Runs one step and prints its output only if it fails.
function step(title, call, advice) {
  return new Promise(function (resolve, reject) {
    const started = Date.now()
    const output = []
    const child = spawn(call.command, call.args, {
      cwd: root,
      shell: call.shell,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.on('data', function (chunk) {
      output.push(chunk)
    })
    child.stderr.on('data', function (chunk) {
      output.push(chunk)
    })
    child.on('error', function (error) {
      reject(new Error(title + ' failed: ' + error.message + '. ' + advice))
    })
    child.on('close', function (code, signal) {
      if (code === 0) {
        say(title + ' took ' + ((Date.now() - started) / 1000).toFixed(1) + ' s')
        resolve()
        return
      }
      process.stderr.write(Buffer.concat(output))
      reject(
        new Error(title + ' failed (' + (signal || 'code ' + code) + '); its output is above. ' + advice),
      )
    })
  })
}

// npm runs scripts through a shell and sends signals only to that shell, which then exits and orphans this process. So stop the
// server when the parent process has gone.
function stopWithTheShell() {
  if (!process.env.npm_lifecycle_event || process.platform === 'win32') return
  const shell = process.ppid
  const watch = setInterval(function () {
    if (process.ppid === shell) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 200)
  watch.unref()
}

async function start() {
  const pinned = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).packageManager.split('+')[0]
  await step(
    'Installing',
    pnpm(pinned, ['install', '--frozen-lockfile']),
    'Check that the package registry can be reached, then run npm start again.',
  )
  await step(
    'Building',
    pnpm(pinned, ['exec', 'turbo', 'run', 'build', '--filter=zabrad', '--filter=zabra']),
    'If the sources are unchanged, remove node_modules and run npm start again.',
  )
  // Resolve paths on the command line from the folder of the user; npm runs scripts in the root folder.
  const typedIn = process.env.INIT_CWD
  if (typedIn && existsSync(typedIn)) process.chdir(typedIn)
  stopWithTheShell()
  // The server runs in this process, so that it receives signals and terminal input directly.
  await import(pathToFileURL(join(here, 'dist', 'main.js')).href)
}

if (isOld(process.version)) {
  say(
    'Zabra needs Node ' +
      needed.join('.') +
      ' or later, and this is ' +
      process.version +
      '. Install a current one from https://nodejs.org or with your version manager (nvm install 22), then run npm start again.',
  )
  process.exitCode = 1
} else {
  start().catch(function (error) {
    say('npm start: ' + (error && error.message ? error.message : String(error)))
    process.exitCode = 1
  })
}
