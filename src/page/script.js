/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live updates, and nothing else: without this script every page works and shows what was true when it was loaded. The server
 * says which part of its state changed; the script fetches the same page again and exchanges the parts that differ. A part is an
 * element with an id inside <main>, or with the class "live". A part in which somebody types or has chosen something stays as it is.
 */
"use strict";

(() => {
	/* The frame of a page names what it shows, and a list adds what it has found. */
	const topicsOf = (root) => [...root.querySelectorAll("[data-live]")].map((element) => element.dataset.live).filter(Boolean).join(" ");
	let topics = topicsOf(document);
	const mark = document.getElementById("live");
	/* For screen readers: what changed. What was done stays where it is, for all to see. */
	const said = document.getElementById("said").appendChild(document.createElement("span"));
	said.className = "hidden";
	let fetching = false;
	let again = false;
	let leaving = false;
	let settled;

	/* The address says what was done just now. Whoever loads the page again later has not done it again. */
	const address = new URL(location.href);
	if (address.searchParams.has("done")) {
		address.searchParams.delete("done");
		history.replaceState(history.state, "", address);
	}

	/* Times are shown in the reader's own zone; the exact value stays in the attribute. */
	const localTimes = (root) => {
		for (const time of root.querySelectorAll("time[datetime]")) {
			const date = new Date(time.dateTime);
			if (!Number.isNaN(date.valueOf())) {
				time.title = time.dateTime;
				time.textContent = date.toLocaleString();
			}
		}
	};

	/* Whether exchanging the element would take something away from the person who works in it. */
	const isInUse = (element) => {
		const active = document.activeElement;
		if (element.contains(active) && active.matches("input, textarea, select"))
			return true;
		for (const input of element.querySelectorAll("input, textarea")) {
			if (input.type === "checkbox" || input.type === "radio") {
				if (input.checked !== input.defaultChecked)
					return true;
			} else if (input.type !== "hidden" && input.value !== input.defaultValue) {
				return true;
			}
		}
		return false;
	};

	/* What a person has opened stays open, and is no difference. */
	const adopt = (old, fresh) => {
		const open = [...old.querySelectorAll("details")].map((details) => details.open);
		localTimes(fresh);
		[...fresh.querySelectorAll("details")].forEach((details, i) => {
			if (open[i] !== undefined)
				details.open = open[i];
		});
	};

	/* The focus stays on the same control, found by its place among those of the part. */
	const exchange = (old, fresh) => {
		const controls = [...old.querySelectorAll("a, button, summary, input, select, textarea, [tabindex]")];
		const at = controls.indexOf(document.activeElement);
		old.replaceWith(fresh);
		if (at >= 0)
			[...fresh.querySelectorAll("a, button, summary, input, select, textarea, [tabindex]")][at]?.focus();
	};

	const tell = (text) => {
		if (text)
			said.textContent = text;
	};

	/* Parts that the fresh page has no more go, new ones come to their place. Output that grows is in no fresh page. */
	const rearrange = (fresh) => {
		let last = document.getElementById("said");
		for (const old of document.querySelectorAll("main > [id]:not(#said)"))
			if (!fresh.getElementById(old.id) && !old.matches("[data-more]") && !old.querySelector("[data-more]") && !isInUse(old))
				old.remove();
		for (const part of fresh.querySelectorAll("main > [id]:not(#said)")) {
			const old = document.getElementById(part.id);
			if (old) {
				last = old;
				continue;
			}
			localTimes(part);
			last.after(part);
			tell(part.dataset.said);
			last = part;
		}
	};

	const exchangeParts = (fresh) => {
		for (const old of document.querySelectorAll("main > [id]:not(#said), .live[id]")) {
			const part = fresh.getElementById(old.id);
			if (!part || old.querySelector("[data-more]") || old.matches("[data-more]"))
				continue;
			adopt(old, part);
			if (part.outerHTML !== old.outerHTML && !isInUse(old)) {
				exchange(old, part);
				tell(part.dataset.said);
			}
		}
	};

	const atEnd = (element) => element.scrollHeight - element.scrollTop - element.clientHeight < 40;

	/* Output only grows: the page says from where on it has to be fetched. */
	const grow = async (element) => {
		const url = new URL(element.dataset.more, location.href);
		url.searchParams.set("since", element.dataset.since);
		const answer = await fetch(url, { headers: { Accept: "text/html" } });
		if (!answer.ok)
			return;
		const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-since]");
		if (!fresh || fresh.dataset.since === element.dataset.since)
			return;
		const follow = atEnd(element);
		element.dataset.since = fresh.dataset.since;
		element.append(...fresh.childNodes);
		while (element.childNodes.length > 4000 || (element.childNodes.length > 1 && element.textContent.length > 1 << 20))
			element.firstChild.remove();
		if (follow)
			element.scrollTop = element.scrollHeight;
	};

	/* What a page shows may change, and with it what there is to hear of. A tab that nobody sees holds no stream: browsers have few for
	 * one server, and a form of another tab would wait for one. */
	let stream = null;
	const deafen = () => {
		stream?.close();
		stream = null;
	};
	const listen = (wanted) => {
		if (!wanted || document.hidden || leaving || (stream && wanted === topics))
			return;
		deafen();
		topics = wanted;
		stream = new EventSource("/events?on=" + encodeURIComponent(topics));
		stream.addEventListener("open", () => {
			mark.textContent = "live";
			refresh(); /* what happened until the stream was there was not heard */
		});
		stream.addEventListener("change", () => {
			refresh();
			/* Some of what belongs to a change comes a moment later and is not told: a process that ends, a lock that is free. */
			clearTimeout(settled);
			settled = setTimeout(refresh, 1500);
		});
		stream.addEventListener("error", () => {
			mark.textContent = "not live: the server does not answer";
		});
	};

	const refresh = async () => {
		if (fetching || document.hidden || leaving) {
			again = fetching;
			return;
		}
		fetching = true;
		try {
			for (const element of document.querySelectorAll("[data-more]"))
				await grow(element);
			const url = new URL(location.href);
			url.searchParams.set("refresh", "1");
			const answer = await fetch(url, { headers: { Accept: "text/html" } });
			if (answer.status === 401) {
				location.reload();
				return;
			}
			if (answer.status === 404) {
				leaving = true;
				deafen();
				mark.textContent = "not live: what this page shows is not there any more";
				tell("What this page shows is not there any more.");
			} else if (answer.ok && !answer.redirected && !leaving) {
				const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
				listen(topicsOf(fresh));
				rearrange(fresh);
				exchangeParts(fresh);
			}
		} catch {
			/* The server restarts; the stream says when it is there again. */
		}
		fetching = false;
		if (again) {
			again = false;
			setTimeout(refresh, 500);
		}
	};

	/* A form takes the person to another page; this one shows no more until somebody comes back to it. */
	document.addEventListener("submit", (event) => {
		if (event.target.method === "post") {
			leaving = true;
			deafen();
		}
	});
	window.addEventListener("pageshow", (event) => {
		if (event.persisted) {
			leaving = false;
			listen(topics);
		}
	});
	document.addEventListener("visibilitychange", () => {
		if (document.hidden)
			deafen();
		else
			listen(topics);
	});

	localTimes(document);
	for (const element of document.querySelectorAll("[data-more]"))
		element.scrollTop = element.scrollHeight;
	listen(topics);
})();
