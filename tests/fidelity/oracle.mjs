// Holds xterm.js terminals and compares them. One JSON request a line on stdin, one JSON
// answer a line on stdout; the first argument is the folder with the npm packages.
//
//   {kind: "case", cols, rows, scrollback, steps, cuts, probe}
//     steps: ["write", base64] or ["resize", cols, rows], in order
//     cuts: [{from, to, replays: {engine: base64}}]; a repaint stands for the state
//     before step `from` and is looked at there, behind step `to`, and at the end
//   {kind: "effects", cols, rows, data}: what writing *data* makes a terminal do outside
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const require = createRequire(join(process.argv[2], 'unnamed.js'))
const { Terminal } = require('@xterm/headless')
const { Unicode11Addon } = require('@xterm/addon-unicode11')

const HAS_EXTENDED = 1 << 28
const EXACT_COLOUR = 3
const COLOURS_ASKED = [4, 10, 11, 12]
const TITLE_STACK = [22, 23]
const REPORTS = { getWinState: true, getWinPosition: true, getWinSizePixels: true, getScreenSizePixels: true, getCellSizePixels: true, getWinSizeChars: true, getScreenSizeChars: true, getIconTitle: true, getWinTitle: true }

class Emulator {
  constructor(cols, rows, scrollback) {
    this.terminal = new Terminal({ cols, rows, scrollback, windowOptions: REPORTS, allowProposedApi: true, logLevel: 'off' })
    this.terminal.loadAddon(new Unicode11Addon())
    this.terminal.unicode.activeVersion = '11'
    this.core = this.terminal._core
    this.title = ''
    this.effects = []
    this.held = Buffer.alloc(0)
    this.terminal.onTitleChange((title) => { this.title = title })
    this.watchEffects()
  }

  watchEffects() {
    const { terminal, effects } = this
    const note = (text) => { effects.push(text); return false }
    terminal.onData((data) => note(`answer ${JSON.stringify(data)}`))
    terminal.onBell(() => note('bell'))
    terminal.parser.registerOscHandler(52, () => note('clipboard'))
    for (const number of COLOURS_ASKED) {
      terminal.parser.registerOscHandler(number, (data) => data.includes('?') && note(`colour ${number}`))
    }
    terminal.parser.registerCsiHandler({ final: 't' },
      (parameters) => !TITLE_STACK.includes(parameters[0]) && note(`window ${parameters}`))
  }

  // xterm.js loses some characters that are cut between two writes; the product never
  // cuts a frame there, so neither is done here.
  write(data) {
    const bytes = Buffer.concat([this.held, data])
    const end = bytes.length - unfinishedCharacter(bytes)
    this.held = bytes.subarray(end)
    this.core.writeSync(bytes.subarray(0, end))
  }

  run(steps) {
    for (const step of steps) {
      if (step.bytes) this.write(step.bytes)
      else this.terminal.resize(step.cols, step.rows)
    }
  }

  dispose() { this.terminal.dispose() }
}

function unfinishedCharacter(bytes) {
  for (let count = 1; count <= Math.min(bytes.length, 3); count++) {
    const byte = bytes[bytes.length - count]
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1
    return byte < 0xf5 && length > count ? count : 0
  }
  return 0
}

// What no cell shows but later bytes meet.
function hiddenState(emulator) {
  const { core } = emulator
  const { coreService, coreMouseService, _inputHandler: input, _charsetService: charsets } = core
  const { buffers } = core._bufferService
  const modes = Object.entries(coreService.decPrivateModes)
  const state = {
    title: emulator.title,
    cursorHidden: Boolean(coreService.isCursorHidden),
    look: modes.filter(([name]) => name.startsWith('cursor')).filter(([, value]) => value !== undefined),
    modes: modes.filter(([name]) => !name.startsWith('cursor')),
    insert: coreService.modes.insertMode,
    newline: Boolean(emulator.terminal.options.convertEol),
    mouse: [coreMouseService.activeProtocol, coreMouseService.activeEncoding],
    charset: [charsets.glevel, ...[0, 1, 2, 3].map((slot) => Object.keys(charsets._charsets[slot] ?? {}).length)],
    pen: penOf(input._curAttrData, core._oscLinkService),
    ...bufferState(core, buffers.active, 'shown'),
  }
  return buffers.active === buffers.alt
    ? { ...state, ...bufferState(core, buffers.normal, 'main') }
    : state
}

function bufferState(core, buffer, name) {
  const { cols } = core._bufferService
  const stops = Object.keys(buffer.tabs).map(Number).filter((column) => buffer.tabs[column] && column > 0 && column < cols)
  return {
    [`${name} region`]: [buffer.scrollTop, buffer.scrollBottom],
    [`${name} tabs`]: stops,
    [`${name} saved cursor`]: [buffer.savedX, Math.max(buffer.savedY - buffer.ybase, 0)],
    [`${name} saved pen`]: penOf(buffer.savedCurAttrData, core._oscLinkService),
    [`${name} saved charset`]: buffer.savedCharset ?? null,
  }
}

function penOf(attributes, links) {
  const { fg, bg, extended } = attributes
  const pen = [fg >>> 0, (bg & ~HAS_EXTENDED) >>> 0]
  if (!extended || !(bg & HAS_EXTENDED)) return pen
  return [...pen, extended.underlineStyle, underlineColour(extended), uriOf(extended, links)]
}

const uriOf = (extended, links) => extended.urlId ? links.getLinkData(extended.urlId)?.uri ?? '' : ''

// "As the text" is written in two ways: by a field of ones, and by colour mode 0.
function underlineColour(extended) {
  const colour = extended.underlineColor & 0x3ffffff
  const mode = colour >>> 24
  if (colour === 0x3ffffff || mode === 0) return ''
  return `${mode}/${mode === EXACT_COLOUR ? colour & 0xffffff : colour & 0xff}`
}

const FLAGS = { isBold: 'b', isItalic: 'i', isDim: 'd', isBlink: 'k', isInverse: 'r', isInvisible: 'h', isStrikethrough: 's', isOverline: 'o' }

function describeCell(view, column, scratch, links) {
  const cell = view.getCell(column, scratch)
  if (!cell) return null
  const extended = cell.hasExtendedAttrs() ? cell.extended : null
  let attributes = Object.keys(FLAGS).filter((flag) => cell[flag]()).map((flag) => FLAGS[flag]).join('')
  if (cell.isUnderline()) attributes += `u${extended?.underlineStyle || 1}${extended ? underlineColour(extended) : ''}`
  return {
    text: cell.getChars() || ' ',
    width: cell.getWidth(),
    foreground: colourOf(cell.getFgColorMode(), cell.getFgColor()),
    background: colourOf(cell.getBgColorMode(), cell.getBgColor()),
    attributes,
    link: extended ? uriOf(extended, links) : '',
  }
}

// One of the 16 colours is the same whether it was asked for as such or of the 256.
function colourOf(mode, colour) {
  if (mode === 0) return ''
  return mode === EXACT_COLOUR << 24 ? `#${colour.toString(16)}` : `${colour}`
}

// Of a blank, neither its colour nor bold, italic and the like can be seen.
function cellDifference(left, right) {
  if (!left || !right) return left === right ? null : 'width'
  const blank = left.text === ' ' && right.text === ' '
  for (const field of Object.keys(left)) {
    if (left[field] === right[field]) continue
    if (blank && field === 'foreground' && !/[rusok]/.test(left.attributes + right.attributes)) continue
    if (blank && field === 'attributes' && seen(left) === seen(right)) continue
    return field
  }
  return null
}

const seen = (cell) => cell.attributes.replace(/[bidkh]/g, '')

function alikeAtOnce(left, right) {
  const [a, b] = [left._data, right._data]
  if (left.length !== right.length) return false
  for (let index = 0; index < 3 * left.length; index++) if (a[index] !== b[index]) return false
  return [left, right].every((line) => !Object.keys(line._combined).length && !Object.keys(line._extendedAttrs).length)
}

function bufferDifference(left, right, which, found) {
  const [a, b] = [left, right].map((emulator) => emulator.terminal.buffer[which])
  if (a.length !== b.length) found.add(`${which} length`)
  const lines = [left, right].map((emulator) => emulator.core._bufferService.buffers[which === 'normal' ? 'normal' : 'alt'].lines)
  const scratch = [a.getNullCell(), b.getNullCell()]
  for (let row = 0; row < Math.min(a.length, b.length); row++) {
    const at = [a.length - 1 - row, b.length - 1 - row] // aligned at the bottom
    if (alikeAtOnce(lines[0].get(at[0]), lines[1].get(at[1]))) continue
    const views = [a.getLine(at[0]), b.getLine(at[1])]
    for (let column = 0; column < left.terminal.cols; column++) {
      const difference = cellDifference(
        describeCell(views[0], column, scratch[0], left.core._oscLinkService),
        describeCell(views[1], column, scratch[1], right.core._oscLinkService))
      if (difference) found.add(difference)
    }
  }
}

function visibleDifference(left, right) {
  const found = new Set()
  const [a, b] = [left, right].map((emulator) => emulator.terminal.buffer.active)
  if (a.type !== b.type) found.add('buffer')
  bufferDifference(left, right, 'normal', found)
  if (a.type === 'alternate' && b.type === 'alternate') bufferDifference(left, right, 'alternate', found)
  if (a.cursorX !== b.cursorX || a.cursorY !== b.cursorY) found.add('cursor')
  return [...found]
}

function hiddenDifference(left, right) {
  const [a, b] = [hiddenState(left), hiddenState(right)]
  return Object.keys(a).filter((name) => JSON.stringify(a[name]) !== JSON.stringify(b[name]))
}

const difference = (left, right) => [...visibleDifference(left, right), ...hiddenDifference(left, right)]

function decodeStep([kind, ...values]) {
  return kind === 'write' ? { bytes: Buffer.from(values[0], 'base64') } : { cols: values[0], rows: values[1] }
}

function runCase(request) {
  const steps = request.steps.map(decodeStep)
  const last = [{ bytes: Buffer.from(request.probe, 'base64') }]
  const make = (cols, rows) => new Emulator(cols, rows, request.scrollback)
  const end = make(request.cols, request.rows)
  end.run([...steps, ...last])
  const straight = make(request.cols, request.rows)
  let position = 0
  const results = request.cuts.map(({ from, to, replays }) => {
    straight.run(steps.slice(position, from))
    position = to
    const { cols, rows } = straight.terminal
    const repainted = Object.entries(replays).map(([engine, replay]) => {
      const emulator = make(cols, rows)
      emulator.write(Buffer.from(replay, 'base64'))
      const checks = { replay: visibleDifference(straight, emulator), hidden: hiddenDifference(straight, emulator) }
      return { engine, emulator, checks, effects: [...emulator.effects] }
    })
    straight.run(steps.slice(from, to))
    return Object.fromEntries(repainted.map(({ engine, emulator, checks, effects }) => {
      emulator.run(steps.slice(from, to))
      checks.continue = difference(straight, emulator)
      emulator.run([...steps.slice(to), ...last])
      checks.rest = difference(end, emulator)
      emulator.dispose()
      return [engine, { checks, effects }]
    }))
  })
  straight.dispose()
  end.dispose()
  return results
}

function effectsOf(request) {
  const emulator = new Emulator(request.cols, request.rows, 0)
  emulator.write(Buffer.from(request.data, 'base64'))
  return emulator.effects
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line)
  const answer = request.kind === 'case' ? runCase(request) : effectsOf(request)
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
