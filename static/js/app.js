// What every page has: theme switch, drawer, dialogs, shortcuts, copy buttons, htmx set-up.
import { startAsks } from "./core/asks.js";
import { startDialogs } from "./core/dialogs.js";
import { startDrawer } from "./core/drawer.js";
import { startFocus } from "./core/focus.js";
import { startHtmx } from "./core/htmx.js";
import { startCopyButtons } from "./core/copy.js";
import { startMenus } from "./core/menus.js";
import { startPalette } from "./core/palette.js";
import { startNews } from "./core/news.js";
import { startTicks } from "./core/ticks.js";
import { startShortcuts } from "./core/shortcuts.js";
import { startThemeSwitch } from "./core/theme-switch.js";
import { startSidebar } from "./core/sidebar.js";

startThemeSwitch();
startDrawer();
startDialogs();
startAsks();
startHtmx();
startCopyButtons();
startMenus();
startShortcuts();
startTicks();
startSidebar();
startFocus();
startNews();
startPalette();
